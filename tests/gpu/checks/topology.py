"""allot topo and nvidia-smi topo -m must show the same link (NV18, PIX, ...) for each pair of cards and the same NUMA nodes."""

import json
import re
import shutil
import subprocess


def read_matrix(text):
    """From nvidia-smi topo -m: ({(a, b): link}, {card: NUMA node or None})."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.splitlines()]
    heads = [line for line in lines if re.match(r"\s*GPU0\b", line)]
    columns = [column.strip() for column in heads[0].split("\t")] if heads else []
    words, nodes = {}, {}
    for line in lines[lines.index(heads[0]) + 1:] if heads else []:
        cells = [cell.strip() for cell in line.split("\t")]
        row = re.fullmatch(r"GPU(\d+)", cells[0])
        if not row:
            continue
        for column, cell in zip(columns, cells):
            card = re.fullmatch(r"GPU(\d+)", column)
            if card and card[1] != row[1]:
                words[int(row[1]), int(card[1])] = cell
            if column == "NUMA Affinity":
                nodes[int(row[1])] = int(cell) if cell.isdigit() else None
    return words, nodes


def word_of(link):
    return f"NV{link['nvlinks']}" if link["nvlinks"] else link["pcie"]


def check(machine, tally, options):
    why = "it speaks to a real driver alone" if machine.sim else \
        None if shutil.which("nvidia-smi") else "no nvidia-smi here"
    if why:
        tally.skip("allot topo against nvidia-smi topo -m", why)
        return
    text = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True, timeout=60,
                          check=True).stdout
    words, nodes = read_matrix(text)
    said = json.loads(machine.tell("topo", "--json"))
    ours = {tuple(link["devices"]): word_of(link) for link in said["links"]}
    theirs = {pair: word for pair, word in words.items() if pair[0] < pair[1]}
    tally.verdict(ours == theirs, "allot topo: each pair as nvidia-smi topo -m has it",
                  f"{ours}" if ours == theirs else f"{ours}; nvidia-smi {theirs}")
    known = {device["index"]: device["numa"] for device in said["devices"]}
    tally.verdict(known == nodes or not any(node is not None for node in nodes.values()),
                  "allot topo: NUMA nodes as nvidia-smi has them", f"{known}; nvidia-smi {nodes}")
