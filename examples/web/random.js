// Random numbers from a seed: the same on every machine.

export class Random {
  // Sfc32 (a small fast counting generator), started from any number of integers.
  constructor(...seed) {
    this.state = new Uint32Array([0x9e3779b9, 0x243f6a88, 0xb7e15162, 1]);
    for (const part of seed) {
      this.state[0] ^= part;
      for (let i = 0; i < 12; i++) this.bits();
    }
  }

  bits() {
    const s = this.state, result = (s[0] + s[1] + s[3]) >>> 0;
    s[3] += 1;
    s[0] = s[1] ^ (s[1] >>> 9);
    s[1] = s[2] + (s[2] << 3);
    s[2] = ((s[2] << 21) | (s[2] >>> 11)) + result;
    return result;
  }

  uniform(low = 0, high = 1) {
    return low + (high - low) * (this.bits() + 0.5) / 2 ** 32; // never 0 or 1 of the unit interval
  }

  normal(mean = 0, std = 1) {
    const size = Math.sqrt(-2 * Math.log(this.uniform()));
    return mean + std * size * Math.cos(2 * Math.PI * this.uniform());
  }

  gumbel() {
    return -Math.log(-Math.log(this.uniform()));
  }
}
