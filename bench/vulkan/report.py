"""Write what was measured as Markdown: the shares with the project's aims, then each candidate's rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OURS = "Triton, Vulkan"


def markdown(found: Mapping[str, Any]) -> str:
    """Return the report.

    Args:
        found: what __main__.py writes as JSON.
    """
    machine = [
        f"- {part}: {', '.join(f'{key} {value}' for key, value in each.items())}"
        for part, each in found["machine"].items()
    ]
    lines = ["# Triton on a Vulkan device, measured", "", *machine, ""]
    plan = found["plan"]
    lines += [
        f"Taken by `{found['command']}` in {found['seconds']:.0f} s. Candidates take turns in one process. Rates are "
        f"medians of {plan['rounds']} rounds, after {plan['warm']:g} s of work that do not count. Both backends of "
        "Triton run the same kernels, each with the fastest of the same configurations. Every result was compared with "
        "float64 first.",
        "",
        "| measure | peer | share of the peer's speed | at least | aim |",
        "|---|---|---|---|---|",
    ]
    for measure in found["measures"].values():
        rates = {each["name"]: each for each in measure.get("candidates", ())}
        for aim in measure.get("aims", ()):
            lines.append(
                f"| {measure['title']} | {aim['peer']} | {_share(rates, aim)} | {aim['least']:g} | {aim['aim']:g} |"
            )
    lines += [
        "",
        "| measure | candidate | rate | least to most | configuration | error, part of what is allowed |",
        "|---|---|---|---|---|---|",
    ]
    for measure in found["measures"].values():
        for each in measure.get("candidates", ()):
            config = ", ".join(f"{name} {value:g}" for name, value in {**each["config"], **each["compiled"]}.items())
            span = f"{each['least']:.4g} to {each['most']:.4g}"
            error = f"{each['error']:.2g}" if each["right"] else f"**WRONG: {each['error']:.3g}**"
            rate = f"{each['rate']:.4g} {measure['unit']}"
            lines.append(f"| {measure['title']} | {each['name']} | {rate} | {span} | {config} | {error} |")
    problems = [
        f"- {measure['title']}, {who}: {what}"
        for measure in found["measures"].values()
        for who, what in measure.get("failed", {}).items()
    ]
    if problems:
        lines += ["", "Not measured:", "", *(problem.replace("\n", " ") for problem in problems)]
    return "\n".join(lines) + "\n"


def _share(rates: Mapping[str, Any], aim: Mapping[str, Any]) -> str:
    missing = [name for name in (OURS, aim["peer"]) if name not in rates]
    if missing:
        return f"not measured: {', '.join(missing)}"
    if wrong := [name for name in (OURS, aim["peer"]) if not rates[name]["right"]]:
        return f"none, wrong: {', '.join(wrong)}"
    share = rates[OURS]["rate"] / rates[aim["peer"]]["rate"]
    return f"{share:.2f}" if share >= aim["least"] else f"**{share:.2f}**, missed"
