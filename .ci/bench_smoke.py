"""Runs the example `bench` as server and client once per workload and checks its verdict."""

import json
import socket
import subprocess
import sys

# workload: size, count, threads, conns, window; a small, quick run of each.
WORKLOADS = {
    "w1": (64, 20_000, 1, 1, 128),
    "w2": (64, 2_000, 1, 1, 1),
    "w3": (64, 20_000, 32, 1, 1),
    "w4": (64, 20_000, 1, 10, 16),
    "w5": (581, 1_000, 1, 10, 1),
}
SECONDS = 60


def free_port():
    """A port that is free together with the two after it."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        try:
            for offset in range(3):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + offset))
            return port
        except (OSError, OverflowError):
            continue
    sys.exit("no three free ports in a row")


def run(binary, workload, numbers):
    options = ["--port", free_port(), "--workload", workload, "--variant", "default"]
    for name, number in zip(("size", "count", "threads", "conns", "window"), numbers):
        options += [f"--{name}", number]
    options = [str(option) for option in options]
    server = subprocess.Popen(
        [binary, "server", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        if server.stdout.readline().strip() != "READY":
            sys.exit(f"{workload}: the server does not say READY")
        client = subprocess.run(
            [binary, "client", *options, "--server-pid", str(server.pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        result = json.loads(client.stdout.strip().splitlines()[-1])
        print(f"{workload}: {json.dumps(result)}")
        if result.get("ok") is not True or result.get("errors", 0) != 0:
            sys.exit(f"{workload}: not ok")
        server.stdin.close()
        if server.wait(timeout=SECONDS) != 0:
            sys.exit(f"{workload}: the server ended with {server.returncode}")
    finally:
        server.kill()


for workload, numbers in WORKLOADS.items():
    try:
        run(sys.argv[1], workload, numbers)
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        sys.exit(f"{workload}: {error}")
