"""Measures the replay memory on frames collected from every Atari and CoinRun task.

    python -m benchmarks.replay [--observations N] [--skip-full]

`ratio` says how many times better ours is: lower, but for `mean_compression`.
The full buffer is made of really collected Atari frames, each chunk four times: as it
is, mirrored, upside down, and both. It takes several minutes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.replay_buffers.episode_replay_buffer import EpisodeReplayBuffer

from rllib_arrow.envs.suites import SUITES, make_task
from rllib_arrow.replay import AugmentedReplay, Chunk
from rllib_arrow.replay.splicer import Splicer
from rllib_arrow.seeding import derive_rng

SEED = 1
ENVS = 4
CHUNK_LENGTH = 512
FRAME_BYTES = 64 * 64 * 3
LIMIT = "limit set for this project"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", type=int, default=2**19)
    parser.add_argument("--skip-full", action="store_true")
    arguments = parser.parse_args()
    if not arguments.skip_full:
        # First, while the process has no memory to use again: resident memory counts.
        full = fill(arguments.observations // CHUNK_LENGTH)
        compare_counts(full)
        time_snapshots(full)
    for suite in ("atari", "coinrun"):
        compare_sampling(suite, measure_sizes(suite))


def emit(
    name: str, ours: float, peer: float, peer_name: str, unit: str, **more: object
) -> None:
    better = ours / peer if name.startswith("mean_compression") else peer / ours
    figure = {
        "name": f"replay/{name}",
        "ours": float(f"{ours:.4g}"),
        "peer": float(f"{peer:.4g}"),
        "peer_name": peer_name,
        "ratio": float(f"{better:.3g}"),
        "unit": unit,
        **more,
    }
    print(json.dumps(figure), flush=True)


def collect(suite: str, name: str, chunks_per_env: int) -> Iterator[Chunk]:
    """Yields chunks of a uniformly random policy."""
    task = make_task(suite, name, ENVS)
    splicer = Splicer(ENVS, CHUNK_LENGTH)
    rng = derive_rng(SEED, "actions", name)
    rows = task.reset(SEED)
    for _ in range(chunks_per_env * CHUNK_LENGTH):
        actions = rng.integers(task.action_space.n, size=ENVS)
        flags = rows.is_first, rows.is_terminated
        fields = (rows.obs, actions, rows.rewards, *flags)
        one = [
            Chunk(*(field[env : env + 1] for field in fields)) for env in range(ENVS)
        ]
        yield from splicer.push(one)
        rows = task.step(actions)
    task.close()


def fifo(capacity_chunks: int) -> AugmentedReplay:
    return AugmentedReplay(capacity_chunks, CHUNK_LENGTH, ltdm_fraction=0, seed=SEED)


def measure_sizes(suite: str) -> list[Chunk]:
    """Prints bytes per observation of each task; returns chunks of all of them."""
    ratios, some = [], []
    for name in SUITES[suite].tasks:
        chunks = list(collect(suite, name, chunks_per_env=2))
        replay = fifo(len(chunks))
        for chunk in chunks:
            replay.add(chunk)
        size = replay.stats()["bytes"] / replay.stats()["observations"]
        place = f"bytes_per_observation/{suite}/{name}"
        emit(place, size, FRAME_BYTES, "uint8 frames", "bytes")
        emit(place, size, 4 * FRAME_BYTES, "float32 frames", "bytes")
        ratios.append(FRAME_BYTES / size)
        some += chunks[:ENVS]
    place = f"mean_compression/{suite}"
    limit = {"atari": 20, "coinrun": 4}[suite]
    emit(place, float(np.mean(ratios)), limit, f"at least; {LIMIT}", "times uint8")
    return some


def compare_sampling(suite: str, chunks: list[Chunk]) -> None:
    """Prints the time of `sample(16, 32)` beside RLlib's buffer with the same rows."""
    ours = fifo(len(chunks))
    arrays, lists = (EpisodeReplayBuffer(len(chunks) * CHUNK_LENGTH) for _ in range(2))
    for chunk in chunks:
        ours.add(chunk)
        # RLlib's env runners hand over arrays, unless they are told not to.
        arrays.add([episode.to_numpy() for episode in episodes_of(chunk)])
        lists.add(list(episodes_of(chunk)))
    size = {"batch_size_B": 16, "batch_length_T": 32}
    calls = {
        "ours": lambda: ours.sample(16, 32),
        "arrays": lambda: arrays.sample(**size),
        "lists": lambda: lists.sample(**size),
    }
    times = alternate(calls, repeats=300)
    for peer in ("arrays", "lists"):
        emit(
            f"sample_16x32/{suite}",
            1e3 * times["ours"],
            1e3 * times[peer],
            f"RLlib EpisodeReplayBuffer, uncompressed, {peer}",
            "CPU ms",
            observations=len(chunks) * CHUNK_LENGTH,
        )


def episodes_of(chunk: Chunk) -> Iterator[SingleAgentEpisode]:
    """Yields the episodes in a chunk, as RLlib's buffer wants them."""
    ends = [*np.flatnonzero(chunk.is_first)[1:], CHUNK_LENGTH]
    for start, stop in itertools.pairwise((0, *ends)):
        if stop - start > 1:  # one observation is no transition
            yield SingleAgentEpisode(
                observations=list(chunk.obs[start:stop]),
                actions=list(chunk.actions[start : stop - 1]),
                rewards=chunk.rewards[start + 1 : stop].tolist(),
                terminated=bool(chunk.is_terminated[stop - 1]),
                len_lookback_buffer=0,
            )


def alternate(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Returns median CPU seconds of all threads; the calls take turns.

    CPU time, because the time on the clock also tells what else the machine does.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.process_time()
            call()
            times[name].append(time.process_time() - began)
    return {name: float(np.median(values)) for name, values in times.items()}


def fill(capacity_chunks: int) -> AugmentedReplay:
    """Fills a FIFO until chunks are thrown out; prints resident memory."""
    games = SUITES["atari"].tasks
    make_task("atari", games[0], ENVS).close()  # what the emulator loads is not ours
    before = resident_bytes()
    replay = fifo(capacity_chunks)
    per_env = -(-capacity_chunks // (4 * ENVS * len(games)))
    seconds = 0.0
    for name in games:
        for chunk in collect("atari", name, per_env):
            for down, right in itertools.product((1, -1), repeat=2):
                turned = chunk._replace(obs=chunk.obs[:, ::down, ::right])
                began = time.perf_counter()
                replay.add(turned, task=name)
                seconds += time.perf_counter() - began
    stats = replay.stats()
    count = stats["observations"]
    assert count == capacity_chunks * CHUNK_LENGTH, "not full"
    for peer, width in (("uint8 frames, computed", 1), ("float32 frames, computed", 4)):
        emit("full/bytes", stats["bytes"], width * count * FRAME_BYTES, peer, "bytes")
    grown, held = resident_bytes() - before, "stats()['bytes']"
    emit("full/resident_growth", grown, stats["bytes"], held, "bytes")
    process = {
        "name": "replay/full/process",
        "observations": count,
        "resident_bytes": resident_bytes(),
        "peak_resident_bytes": peak_resident_bytes(),
        "ms_per_chunk_added": round(1e3 * seconds / stats["chunks_added"], 1),
    }
    print(json.dumps(process), flush=True)
    return replay


def compare_counts(full: AugmentedReplay) -> None:
    """Prints what adding and sampling cost in the full buffer and in smaller ones."""
    whole = full.gather(full.draw(32, CHUNK_LENGTH))
    chunks = [Chunk(*fields) for fields in zip(*whole.values(), strict=True)]
    replays = {f"2^{n}": fifo(2**n // CHUNK_LENGTH) for n in (14, 16)}
    for replay in replays.values():
        for chunk in itertools.islice(itertools.cycle(chunks), 2**16 // CHUNK_LENGTH):
            replay.add(chunk)
    replays["full"] = full
    samples = {k: lambda r=r: r.sample(16, 32) for k, r in replays.items()}
    turn = {k: itertools.cycle(chunks) for k in replays}
    adds = {k: lambda k=k, r=r: r.add(next(turn[k])) for k, r in replays.items()}
    for name, calls, repeats in (("sample_16x32", samples, 400), ("add", adds, 96)):
        times = alternate(calls, repeats)
        for key in ("2^14", "2^16"):
            emit(
                f"flat/{name}",
                1e3 * times["full"],
                1e3 * times[key],
                f"ours with {key} observations",
                "CPU ms",
            )


def time_snapshots(full: AugmentedReplay) -> None:
    """Prints median seconds of saving, loading from disk, and saving 1 % more."""
    saves, loads, more = [], [], []
    for _ in range(5):
        new = full.gather(full.draw(-(-len(full) // 100), CHUNK_LENGTH))
        new["obs"][:, 0, 0, 0] ^= 1  # one changed pixel makes it another chunk
        with tempfile.TemporaryDirectory() as folder:
            saves.append(timed(lambda folder=folder: full.save(folder)))
            forget_cached(Path(folder))
            loads.append(timed(lambda folder=folder: AugmentedReplay.load(folder)))
            for fields in zip(*new.values(), strict=True):
                full.add(Chunk(*fields))
            more.append(timed(lambda folder=folder: full.save(folder)))
    save, load, again = (float(np.median(times)) for times in (saves, loads, more))
    emit("snapshot/save", save, 10, LIMIT, "s", bytes=full.stats()["bytes"])
    emit("snapshot/load", load, 10, LIMIT, "s")
    emit("snapshot/save_1_percent_more", again, save, "first save", "s")


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def forget_cached(folder: Path) -> None:
    """Asks the kernel to drop these files from its cache, so that a load reads disk."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def peak_resident_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
