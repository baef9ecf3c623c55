"""Dream rehearsal: the actor clones the best of its own dreams of what is long past.

After "The World Model Remembers, the Actor Forgets" (arXiv 2607.19749): under replay
the world model keeps old tasks, so what the actor lost can be dreamt up again. Several
dreams start from one long-term row. They are graded against each other, and the actor
alone learns the actions of the best quarter.

What was reached in a dream decides. Rewards count as far as the dream was still alive
when they came: a grader that reads past the end of an episode is as good as chance.
What the critic promises for afterwards only orders dreams that reached the same: else
a dream that ends with success loses to one that might still succeed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rllib_arrow.algorithms.dv3.losses import dream_weights
from rllib_arrow.algorithms.dv3.objectives import Metrics, autocast
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.models.distributions import two_hot_mean, unimix_probs

BEST_IN = 4  # one dream in so many is cloned
# A promise is worth no more than this, whatever the critic says: less than any reward.
LARGEST_PROMISE = 0.1


def grade_dreams(
    rewards: Tensor,
    goes_on: Tensor,
    last_values: Tensor,
    starts_continue: Tensor,
    siblings: int,
) -> tuple[Tensor, Tensor]:
    """Returns how much better each dream is than its siblings [N], and who is alive.

    Args:
        rewards: [H, N], arrived with the states 1..H.
        goes_on: [H, N], of the states 1..H: how likely the episode goes on from there.
        last_values: [N], what the critic says of the last states.
        starts_continue: bool [N].
        siblings: So many neighbours have one start.

    Returns:
        Grades [N], with a mean of zero among siblings, and how likely each of the
        first H states is reached alive [H, N].
    """
    alive = dream_weights(goes_on, starts_continue)
    reached = (alive * rewards).sum(0)
    promised = _among_siblings(alive[-1] * goes_on[-1] * last_values, siblings)
    grades = reached + LARGEST_PROMISE * torch.tanh(promised)
    return _among_siblings(grades, siblings), alive


def _among_siblings(values: Tensor, siblings: int) -> Tensor:
    families = values.view(-1, siblings)
    return (families - families.mean(1, keepdim=True)).flatten()


def rehearsal_loss(
    net: DV3RLModule,
    config: Any,
    states: Tensor,
    actions: Tensor,
    starts_continue: Tensor,
) -> tuple[Tensor, Metrics]:
    """Returns the actor's cross-entropy with the best of its dreams.

    Args:
        net, config: Of the learner.
        states: [H + 1, N, state_units]; neighbours are siblings.
        actions: int64 [H, N].
        starts_continue: bool [N].
    """
    with torch.no_grad():
        with autocast(config, states.device):
            reward_logits = net.reward_head(states[1:])
            continue_logits = net.continue_head(states[1:]).squeeze(-1)
            value_logits = net.critic(states[-1])
        rewards = two_hot_mean(reward_logits)
        grades, alive = grade_dreams(
            rewards,
            torch.sigmoid(continue_logits.float()),
            two_hot_mean(value_logits),
            starts_continue,
            config.rehearsal_siblings,
        )
        gains, best = grades.topk(-(-len(grades) // BEST_IN))
        # Where all siblings are alike, there is nothing to learn from the best of them.
        is_better = (gains > 0).to(alive.dtype)
        weights = alive[:, best] * is_better
    with autocast(config, states.device):
        logits = net.actor.logits(states[:-1, best])
    if config.rehearsal_through == "logits":
        log_probs = torch.log_softmax(logits.float(), -1)
    else:
        log_probs = unimix_probs(logits).log()
    taken = log_probs.gather(-1, actions[:, best].unsqueeze(-1)).squeeze(-1)
    loss = -(weights * taken).sum() / weights.sum().clamp(min=1.0)
    metrics = {
        "rehearsal_loss": loss.detach(),
        "rehearsal_gain": gains.mean(),
        "rehearsal_reached": (alive * rewards)[:, best].sum(0).mean(),
        "rehearsal_cloned": is_better.mean(),
    }
    return loss, metrics
