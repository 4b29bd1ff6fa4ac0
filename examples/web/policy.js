// A policy that `edp export` wrote, in onnxruntime-web. Its contract says what goes in and what comes out.

import * as ort from "./onnxruntime/ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1; // the networks are small; more threads need headers that simple file servers do not send
ort.env.wasm.wasmPaths = { wasm: new URL("onnxruntime/ort-wasm-simd-threaded.wasm", import.meta.url).href };

const RANDOM = { noise: "normal", gumbel: "gumbel" }; // inputs with random numbers, and where they come from
const FARTHEST = 1e-4; // difference from the contract's example, as a share of the action's range

async function get(file) {
  const answer = await fetch(new URL(file, import.meta.url));
  if (!answer.ok) throw new Error(`${file}: ${answer.status} ${answer.statusText}`);
  return answer;
}

export class Policy {
  // Loads policy.onnx and policy.json, and compares the model with the contract's example. The policy may see `observations`
  // and has to set `actions`.
  static async load(observations, actions) {
    const [contract, bytes] = await Promise.all([
      get("policy.json").then((answer) => answer.json()), get("policy.onnx").then((answer) => answer.arrayBuffer()),
    ]);
    const unknown = contract.observations.find((each) => !observations.includes(each.name));
    if (unknown) throw new Error(`the house has no ${unknown.name}: build the page with a policy of examples/heating`);
    const names = contract.actions.map((each) => each.name).join(", ");
    if (names !== actions.join(", ")) throw new Error(`the policy sets ${names}, and the house needs ${actions.join(", ")}`);
    const strange = contract.inputs.find((each) => each.name !== "observation" && !(each.name in RANDOM));
    if (strange) throw new Error(`the policy asks for ${strange.name}: this page gives it the present observation only`);
    const policy = new Policy();
    policy.contract = contract;
    policy.times = [];
    policy.bytes = bytes.byteLength;
    policy.session = await ort.InferenceSession.create(bytes);
    policy.difference = contract.example && await policy.compare(contract.example);
    return policy;
  }

  // Actions for inputs by name, each an array of numbers for all `rows` states. Random inputs that are not given are drawn.
  async run(inputs, rows, random) {
    const feeds = {};
    for (const { name, shape } of this.contract.inputs) {
      const sides = shape.map((side) => side === "batch" ? rows : side), size = sides.reduce((a, b) => a * b, 1);
      const numbers = inputs[name] ?? Array.from({ length: size }, () => random[RANDOM[name]]());
      feeds[name] = new ort.Tensor("float32", Float32Array.from(numbers), sides);
    }
    const before = performance.now(), { action } = await this.session.run(feeds);
    if (rows === 1) this.times = [...this.times, performance.now() - before].slice(-100);
    const width = this.contract.actions.length;
    return Array.from({ length: rows }, (_, i) => Array.from(action.data.slice(i * width, (i + 1) * width)));
  }

  // What an action takes: the mean of the latest ones, because browsers round their clocks.
  get milliseconds() {
    return this.times.reduce((a, b) => a + b, 0) / this.times.length;
  }

  // Several draws of the action for what is seen, in the contract's order.
  async act(seen, random, draws = 1) {
    const observation = this.contract.observations.map(({ name }) => seen[name]);
    if (!observation.every(Number.isFinite)) throw new Error("an observation is not a number");
    return this.run({ observation: Array(draws).fill(observation).flat() }, draws, random);
  }

  // The greatest difference from an example, as a share of the action's range.
  async compare(example) {
    const inputs = Object.fromEntries(this.contract.inputs.map(({ name }) => [name, example[name].flat(Infinity)]));
    const [found] = await this.run(inputs, 1);
    const shares = this.contract.actions.map(({ low, high }, i) => Math.abs(found[i] - example.action[0][i]) / (high - low));
    const difference = Math.max(...shares);
    if (!(difference <= FARTHEST)) throw new Error(`the model does not give the contract's example (${difference})`);
    return difference;
  }

  // Whether a number is outside of the training data: by more than a tenth of the range's width, as in edp.load_policy.
  isOutside({ low, high }, value) {
    if (low === null) return false;
    const room = (high - low) / 10;
    return value < low - room || value > high + room;
  }
}
