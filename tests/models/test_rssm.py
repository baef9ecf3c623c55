import torch

from rllib_arrow.models.rssm import RSSM, Posterior
from rllib_arrow.models.size import ModelSize, Variant

SIZE = ModelSize(
    latent_groups=3,
    latent_classes=4,
    gru_units=8,
    mlp_units=16,
    mlp_layers=1,
    cnn_depth=1,
)
EMBED, ACTIONS, T, B = 10, 5, 9, 4


def make_rssm(**variant: bool) -> RSSM:
    torch.manual_seed(0)
    return RSSM(SIZE, EMBED, ACTIONS, Variant(**variant))


def make_inputs(length: int = T) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        "embedded": torch.randn(length, B, EMBED, generator=generator),
        "actions": torch.randint(ACTIONS, (length, B), generator=generator),
        "is_first": torch.zeros(length, B, dtype=torch.bool),
        "noise": torch.rand(length, B, SIZE.latent_groups, generator=generator),
    }


def test_the_recurrence_is_a_plain_gru_over_a_normed_layer_of_z_and_action():
    rssm = make_rssm()
    inputs = make_inputs(2)
    found = rssm.observe(**inputs)
    first_action = inputs["actions"][0]
    joint = torch.cat([rssm.input_z.weight, rssm.input_a.weight.t()], dim=1)
    one_hot = torch.nn.functional.one_hot(first_action, ACTIONS).float()
    x = torch.cat([found.z[0], one_hot], dim=1) @ joint.t()
    x = (x - x.mean(1, keepdim=True)) / (x.var(1, False, keepdim=True) + 1e-3).sqrt()
    x = x * torch.sigmoid(x)
    h, cell = found.h[0], rssm.gru
    xr, xu, xn = (x @ cell.weight_ih.t() + cell.bias_ih).chunk(3, 1)
    hr, hu, hn = (h @ cell.weight_hh.t() + cell.bias_hh).chunk(3, 1)
    update = torch.sigmoid(xu + hu)
    candidate = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
    expected = (1 - update) * candidate + update * h
    torch.testing.assert_close(found.h[1], expected)


def test_latents_are_one_hot_in_each_group():
    found = make_rssm().observe(**make_inputs())
    z = found.z.unflatten(-1, (SIZE.latent_groups, SIZE.latent_classes))
    assert torch.equal(z.sum(-1), torch.ones(T, B, SIZE.latent_groups))
    assert set(z.unique().tolist()) == {0.0, 1.0}


def observe_stepwise(rssm, embedded, actions, is_first, noise) -> Posterior:
    """The same as RSSM.observe, one step after the other and by autograd alone."""
    steps = []
    h, z = rssm.initial(B)
    action_part = torch.zeros(B, SIZE.mlp_units)
    for t in range(len(embedded)):
        keep = (~is_first[t]).float().unsqueeze(-1)
        image_part = rssm.posterior_x(embedded[t])
        h, z, probs = rssm.observe_step(
            h * keep, z * keep, action_part * keep, image_part, noise[t]
        )
        steps.append((h, z, probs))
        action_part = rssm.input_a(actions[t])
    return Posterior(*(torch.stack(part) for part in zip(*steps, strict=True)))


def test_unrolled_and_stepwise_give_the_same_states():
    rssm, inputs = make_rssm(), make_inputs()
    inputs["is_first"][3, 1] = inputs["is_first"][6, 2] = True
    whole, steps = rssm.observe(**inputs), observe_stepwise(rssm, **inputs)
    torch.testing.assert_close(whole.h, steps.h)
    torch.testing.assert_close(whole.probs, steps.probs)
    assert torch.equal(whole.z, steps.z)


def test_unrolled_and_stepwise_give_the_same_gradients():
    rssm, inputs = make_rssm(), make_inputs()
    inputs["is_first"][3, 1] = inputs["is_first"][6, 2] = True
    with torch.no_grad():  # norms and biases that start as ones and zeros hide errors
        for param in rssm.parameters():
            param.add_(torch.randn_like(param) * 0.3)
    gradients = []
    for observe in (rssm.observe, lambda **kw: observe_stepwise(rssm, **kw)):
        rssm.zero_grad()
        embedded = inputs["embedded"].clone().requires_grad_()
        found = observe(**inputs | {"embedded": embedded})
        generator = torch.Generator().manual_seed(2)
        total = sum(
            (part * torch.randn(part.shape, generator=generator)).sum()
            for part in found
        )
        total.backward()
        named = {n: p.grad for n, p in rssm.named_parameters() if "prior" not in n}
        gradients.append(named | {"embedded": embedded.grad})
    for name, expected in gradients[1].items():
        assert expected.abs().sum() > 0, name
        torch.testing.assert_close(
            gradients[0][name], expected, rtol=1e-4, atol=1e-5, msg=name
        )


def test_a_reset_inside_a_sequence_equals_two_separate_sequences():
    rssm, inputs = make_rssm(), make_inputs()
    inputs["is_first"][4] = True
    whole = rssm.observe(**inputs)
    head = rssm.observe(**{key: value[:4] for key, value in inputs.items()})
    tail = rssm.observe(**{key: value[4:] for key, value in inputs.items()})
    torch.testing.assert_close(whole.h, torch.cat([head.h, tail.h]))
    torch.testing.assert_close(whole.probs, torch.cat([head.probs, tail.probs]))
    assert torch.equal(whole.z, torch.cat([head.z, tail.z]))


def test_a_reset_touches_its_own_sequence_only_and_stops_the_gradient():
    rssm, inputs = make_rssm(), make_inputs()
    before = rssm.observe(**inputs)
    inputs["is_first"][4, 0] = True
    inputs["embedded"].requires_grad_()
    after = rssm.observe(**inputs)
    torch.testing.assert_close(after.h[:, 1:], before.h[:, 1:])
    assert not torch.equal(after.h[4, 0], before.h[4, 0])
    after.h[-1].sum().backward()
    reached = inputs["embedded"].grad.abs().sum(-1)
    assert torch.equal(reached[:4, 0], torch.zeros(4))
    assert (reached[:4, 1:] > 0).all()


def test_the_first_row_ignores_whatever_came_before_it():
    rssm, inputs = make_rssm(), make_inputs()
    unmarked = rssm.observe(**inputs)
    inputs["is_first"][0] = True
    marked = rssm.observe(**inputs)
    assert torch.equal(unmarked.h, marked.h)


def test_imagining_uses_the_prior_of_the_next_state():
    rssm, inputs = make_rssm(), make_inputs()
    found = rssm.observe(**inputs)
    h, z = rssm.imagine_step(
        found.h[2], found.z[2], inputs["actions"][2], inputs["noise"][3]
    )
    torch.testing.assert_close(h, found.h[3])
    cumulative = rssm.predict(found.h[3]).double().cumsum(-1)
    index = (cumulative <= inputs["noise"][3].double().unsqueeze(-1)).sum(-1)
    z = z.unflatten(-1, (SIZE.latent_groups, SIZE.latent_classes))
    assert torch.equal(z.argmax(-1), index)


def test_variants_are_off_in_the_papers_model_and_add_weights_when_on():
    paper = dict(make_rssm().named_parameters())
    assert {"initial_h", "gru.norm.weight"}.isdisjoint(paper)
    for name, weight in (
        ("gru_norm", "gru.norm.weight"),
        ("learned_initial_state", "initial_h"),
        ("posterior_skip", "posterior_x.weight"),
    ):
        found = dict(make_rssm(**{name: True}).named_parameters())
        assert weight in found
        assert weight not in paper or found[weight].shape != paper[weight].shape


def test_the_paper_s_model_by_autograd_gives_what_is_written_out():
    rssm, inputs = make_rssm(), make_inputs()
    inputs["is_first"][3, 1] = True
    noise = inputs.pop("noise")
    written = rssm.unroll(rssm.prepare(**inputs), noise)
    first = rssm.initial(noise.shape[1])
    derived = rssm.observe_steps(*first, *rssm.prepare(**inputs), noise)
    torch.testing.assert_close(derived.h, written.h)
    assert torch.equal(derived.z, written.z)


def test_a_skip_adds_the_embedding_to_the_logits():
    rssm, inputs = make_rssm(posterior_skip=True), make_inputs(1)
    with torch.no_grad():
        rssm.posterior_out.weight.zero_()  # leaves nothing but the skip
    found = rssm.observe(**inputs)
    skip = rssm.posterior_x.weight[SIZE.mlp_units :]
    logits = (inputs["embedded"] @ skip.t()).unflatten(-1, (3, 4))
    expected = torch.softmax(logits, -1) * 0.99 + 0.01 / 4
    torch.testing.assert_close(found.probs, expected)


def test_sequences_and_resets_start_from_the_learned_state():
    rssm, inputs = make_rssm(learned_initial_state=True), make_inputs()
    with torch.no_grad():
        rssm.initial_h.normal_()
    inputs["is_first"][4] = True
    found = rssm.observe(**inputs)
    h = torch.tanh(rssm.initial_h).expand(B, -1)
    probs = rssm.predict(h)
    z = torch.nn.functional.one_hot(probs.argmax(-1), 4).float().flatten(1)
    expected = rssm.recur(h, z, torch.zeros(B, SIZE.mlp_units))
    torch.testing.assert_close(found.h[0], expected)
    torch.testing.assert_close(found.h[4], expected)
    found.h.sum().backward()
    assert rssm.initial_h.grad.abs().sum() > 0
