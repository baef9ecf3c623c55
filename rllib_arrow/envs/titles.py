"""The suites' names for a reader; here nothing has to be loaded to know them."""

TITLES = {
    "atari": "Atari",
    "coinrun": "CoinRun",
    "minatar": "MinAtar",
    "minatar_variants": "MinAtar variants",
    "minigrid": "MiniGrid",
}
