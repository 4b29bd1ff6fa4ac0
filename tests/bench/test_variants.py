"""The paper's variants, and how their rates are compared."""

from edp.bench import variants


def test_rates_are_compared_round_by_round():
    """Ratios within a round do not change if the machine is twice as slow in every other round."""
    assert variants.median_ratio([20, 10, 20, 10, 20], [10, 5, 10, 5, 10]) == 2


def test_variants_are_the_paper_s():
    found = {name: variants.variant_parts(name)[1] for name in variants.VARIANTS}
    assert (found["dql"].sampler, found["dql"].diffusion_steps, found["dql"].train_action) == ("ddpm", 100, "chain")
    assert (found["edp-without-dpm"].sampler, found["edp-without-dpm"].train_action) == ("ddpm", "approximate")
    assert (found["edp-without-ap"].sampler, found["edp-without-ap"].train_action) == ("dpm", "chain")
    assert (found["edp"].sampler, found["edp"].calls, found["edp"].train_action) == ("dpm", 15, "approximate")
