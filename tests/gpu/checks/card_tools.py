"""Runs in a tenant: starts a load, runs nvidia-smi in several ways meanwhile, and prints nvidia-smi's outputs as
one line of JSON. The first argument is the path of the load's program."""

import json
import subprocess
import sys
import time

SETTLE_S = 3            # utilization is that of the last second

COMMANDS = {
    "plain": [],
    "list": ["-L"],
    "gpus": ["--query-gpu=index,uuid,memory.total,memory.used,utilization.gpu",
             "--format=csv,noheader,nounits"],
    "processes": ["--query-compute-apps=pid,used_memory,gpu_uuid", "--format=csv,noheader,nounits"],
    "monitor": ["pmon", "-c", "1"],
    "memory": ["-q", "-d", "MEMORY,UTILIZATION"],
}

load = subprocess.Popen([sys.argv[1], "--json", "--seconds", "60"], stdout=subprocess.PIPE, text=True)
while '"t_s"' not in load.stdout.readline() and load.poll() is None:
    pass
time.sleep(SETTLE_S)
said = {"pid": load.pid}
for name, options in COMMANDS.items():
    done = subprocess.run(["nvidia-smi", *options], capture_output=True, text=True, check=False)
    said[name] = done.stdout + done.stderr
load.kill()
print(json.dumps(said), flush=True)
