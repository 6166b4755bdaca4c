#!/usr/bin/env python3
"""Runs one or more workloads over all peers in interleaved rounds and prints
markdown tables. Timed runs hold bench.lock (in the temporary folder) exclusively, for one table (all
peers, all rounds) at a time. See README.md for the contract."""
import argparse, fcntl, json, os, statistics as st, subprocess, sys, tempfile, time
TMP = tempfile.gettempdir()
HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("PEERBIN") or os.path.join(HERE, "target/release")
LOCK = os.path.join(TMP, "bench.lock")
# label -> (binary, variant, {workload: variant override})
PEERS = {
    "raw-batch":   ("raw", "batch",   {"w1", "w1b"}),
    "raw-plain":   ("raw", "plain",   {"w1", "w1b"}),
    "raw-swap":    ("raw", "swap",    {"w1", "w1b"}),
    "raw-swapy":   ("raw", "swapy",   {"w1", "w1b"}),
    "raw-comb":    ("raw", "comb",    {"w1b"}),
    "raw-comby":   ("raw", "comby",   {"w1b"}),
    "raw":         ("raw", "batch",   {"w2"}),
    "raw-spin":    ("raw", "spin",    {"w2"}),
    "raw-mux":     ("raw", "mux",     {"w2", "w3"}),
    "raw-mux1":    ("raw", "mux1",    {"w3"}),
    "raw-muxy":    ("raw", "muxy",    {"w2", "w3"}),
    "raw-muxlf":   ("raw", "muxlf",   {"w2", "w3"}),
    "raw-muxsp":   ("raw", "muxsp",   {"w2", "w3"}),
    "raw-muxss":   ("raw", "muxss",   {"w2", "w3"}),
    "raw-muxlfs":  ("raw", "muxlfs",  {"w2", "w3"}),
    "raw-yspin":   ("raw", "yspin",   {"w2"}),
    "raw-batch@512": ("raw", "batch@512", {"w1"}),
    "raw-batch@1024": ("raw", "batch@1024", {"w1"}),
    "raw-Nconn":   ("raw", "thr",     {"w3"}),
    "raw-epoll":   ("raw", "epoll",   {"w4", "w5"}),
    "raw-thr":     ("raw", "thr",     {"w4", "w5"}),
    "raw-thr-plain": ("raw", "plain", {"w4"}),
    "zmq":         ("zmqpeer", "default", {"w1", "w1b", "w2", "w3", "w4", "w5"}),
    "zmq-mutex":   ("zmqpeer", "mutex",   {"w1b"}),
    "zmq-proxy":   ("zmqpeer", "proxy",   {"w1b", "w3"}),
    "zmq-router":  ("zmqpeer", "router",  {"w4", "w5"}),
    "nng":         ("nngpeer", "default", {"w1", "w1b", "w2", "w4", "w5"}),
    "tokio":       ("tokiopeer", "default", {"w1", "w1b", "w2", "w3", "w4", "w5"}),
    "tokio-direct":("tokiopeer", "direct",  {"w1"}),
    "tokio-cur":   ("tokiopeer", "cur",     {"w2", "w3", "w5"}),
    "tokio-thr":   ("tokiopeer", "threads", {"w3"}),
    # FramedTcp W2/W5 stall 40+ ms a call (two writes + Nagle + delayed ACK): by hand only
    "message-io":  ("miopeer", "default", {"w1", "w1b", "w3", "w4"}),
    "message-io-tcp": ("miopeer", "tcp", {"w1", "w1b", "w2", "w3", "w4", "w5"}),
    "tarpc":       ("tarpcpeer", "default", {"w2", "w3"}),
}
BASE = {"w1": "raw-batch", "w1b": "raw-batch", "w2": "raw", "w3": "raw-mux", "w4": "raw-epoll", "w5": "raw-epoll", "w6": "raw-epoll"}
DEF = {  # sizes, threads, conns list
    "w1": ([4, 64, 1024, 8192, 65536], 1, [1]),
    "w1b": ([4, 64, 1024, 8192, 65536], 4, [1]),
    "w2": ([4, 581], 1, [1]),
    "w3": ([64], 32, [1]),
    "w4": ([32, 1000], 1, [100]),
    "w5": ([581], 1, [1000, 5000]),
    "w6": ([32], 1, [100]),
}
port = [20000 + (os.getpid() * 37) % 9000]

def once(label, binary, variant, w, size, count, threads, conns, window, timeout=8):
    port[0] = 20000 + (port[0] - 20000 + 3) % 10000
    p = port[0]
    common = ["--workload", w, "--variant", variant, "--port", str(p), "--size", str(size), "--count", str(count),
              "--threads", str(threads), "--conns", str(conns), "--window", str(window)]
    srv = subprocess.Popen([binary, "server"] + common, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        line = srv.stdout.readline()
        if line.strip() != b"READY":
            return {"ok": False, "err": "server: " + srv.stderr.read().decode()[-300:]}
        try:
            c = subprocess.run([binary, "client"] + common + ["--server-pid", str(srv.pid)], capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"ok": False, "err": "timeout"}
        try:
            r = json.loads(c.stdout.decode().strip().splitlines()[-1])
        except Exception:
            return {"ok": False, "err": (c.stderr.decode() or "no output")[-300:]}
        return r
    finally:
        try: srv.stdin.close()
        except Exception: pass
        try: srv.wait(3)
        except subprocess.TimeoutExpired:
            srv.kill(); srv.wait()

class Locked:
    def __enter__(self):
        self.f = open(LOCK, "a"); fcntl.flock(self.f, fcntl.LOCK_EX)
    def __exit__(self, *a):
        fcntl.flock(self.f, fcntl.LOCK_UN); self.f.close()

def calibrate(label, spec, w, size, threads, conns, window, secs):
    """Count for about `secs` seconds: two growing trial runs."""
    n = {"w1": 4000, "w1b": 4000, "w2": 2000, "w3": 4000, "w4": 20000, "w5": 4 * conns, "w6": 100000}[w]
    if size >= 8192 and w in ("w1", "w1b"): n = 1500
    rate = None
    for frac in (0.15, 0.5):
        r = once(label, *spec, w, size, n, threads, conns, window)
        if not r.get("ok"): return None, r
        rate = r["rate"]
        n = max(n, int(rate * secs * frac))
        if n > 2 * r["count"]: continue
        break
    n = max(int(rate * secs), 2000 if w != "w5" else 4 * conns)
    return min(n, 200_000_000), None

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-w", "--workload", default="w1,w1b,w2,w3,w4,w5")
    ap.add_argument("--sizes"); ap.add_argument("--conns")
    ap.add_argument("--threads", type=int)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--secs", type=float, default=1.2)
    ap.add_argument("--window", type=int, default=128)
    ap.add_argument("--peers", help="labels, comma separated"); ap.add_argument("--skip", default="")
    ap.add_argument("--add", action="append", default=[], help="label=path[:variant[:w1+w2]] another peer")
    ap.add_argument("--base", help="label that ratios are taken to, instead of the workload's raw baseline")
    ap.add_argument("--fixed-count", type=int, help="messages in all, instead of a calibrated count")
    ap.add_argument("--timeout", type=float, default=8, help="seconds for one run")
    ap.add_argument("--out", default=os.path.join(TMP, "peers-results.jsonl"))
    a = ap.parse_args()
    if a.base: BASE.update(dict.fromkeys(BASE, a.base))
    peers = {k: (os.path.join(BIN, b), v, ws) for k, (b, v, ws) in PEERS.items()}
    for x in a.add:
        label, rest = x.split("=", 1)
        q = rest.split(":")
        peers[label] = (q[0], q[1] if len(q) > 1 and q[1] else "default", set(q[2].split("+")) if len(q) > 2 else set(DEF))
    added = {x.split("=", 1)[0] for x in a.add}
    only = a.peers.split(",") + sorted(added) if a.peers else None
    CAL = os.path.join(TMP, "peers-calibration.json")  # messages/s seen; only sets run lengths
    cal = json.load(open(CAL)) if os.path.exists(CAL) else {}
    out = open(a.out, "a")
    for w in a.workload.split(","):
        sizes, threads, connl = DEF[w]
        if a.sizes: sizes = [int(x) for x in a.sizes.split(",")]
        if a.conns: connl = [int(x) for x in a.conns.split(",")]
        if a.threads: threads = a.threads
        for conns in connl:
            for size in sizes:
                names = [k for k, (b, v, ws) in peers.items() if w in ws and (not only or k in only) and k not in a.skip.split(",")]
                res = {k: [] for k in names}; counts = {}; errs = {}
                with Locked():  # one table at a time, about 30 s
                    for k in names:
                        if a.fixed_count: counts[k] = a.fixed_count; continue
                        key = f"{k}/{w}/{size}/{threads}/{conns}"
                        if key not in cal or k in added:  # an added peer changes: measure it anew
                            n, e = calibrate(k, peers[k][:2], w, size, threads, conns, a.window, a.secs)
                            if e: errs[k] = e.get("err", "errors=%s" % e.get("errors")); continue
                            cal[key] = n / a.secs
                            json.dump(cal, open(CAL, "w"))
                        counts[k] = min(max(int(cal[key] * a.secs), 4 * conns), 200_000_000)
                    for rd in range(a.rounds):
                        for k in names:
                            if not counts.get(k): continue
                            r = once(k, *peers[k][:2], w, size, counts[k], threads, conns, a.window, a.timeout)
                            r["peer"] = k; r["round"] = rd
                            out.write(json.dumps(r) + "\n"); out.flush()
                            if r.get("ok"): res[k].append(r)
                            else: errs[k] = r.get("err", "errors=%s" % r.get("errors"))
                table(w, size, conns, threads, names, res, errs)

def med(rs, f): return st.median(x.get(f, 0) for x in rs)
def fmt(x):
    return f"{x/1e6:.2f} M" if x >= 1e6 else f"{x/1e3:.1f} k" if x >= 1e3 else f"{x:.0f}"

def table(w, size, conns, threads, names, res, errs):
    base = BASE[w]
    b = med(res[base], "rate") if res.get(base) else None
    lat = w in ("w2", "w3", "w5")
    print(f"\n**{w} size={size} threads={threads} conns={conns}** (median of {max((len(v) for v in res.values()), default=0)}; ratio to {base}, paired per round)\n")
    h = ["peer", "rate/s", "ratio", "spread", "MB/s"] + (["p50 us", "p99 us", "p50 ratio"] if lat else []) + \
        ["cli CPU (sys)", "srv CPU (sys)", "CPU us/op", "cli ctx/op", "srv ctx/op"] + (["RSS kB/idle conn", "srv threads"] if w == "w5" else ["cli peak MB", "srv peak MB"] if w == "w6" else [])
    print("| " + " | ".join(h) + " |\n|" + "---|" * len(h))
    for k in names:
        rs = res[k]
        if not rs:
            print(f"| {k} | failed: {errs.get(k,'')!s:.80} |"); continue
        r = med(rs, "rate"); lo = min(x["rate"] for x in rs); hi = max(x["rate"] for x in rs)
        cc, sc = med(rs, "cli_cpu"), med(rs, "srv_cpu")
        n = rs[0]["count"]
        bs = {x["round"]: x["rate"] for x in res.get(base, [])}
        pr = [x["rate"] / bs[x["round"]] for x in rs if x["round"] in bs]
        row = [k, fmt(r), f"{st.median(pr):.2g}" if pr else "-", f"{(hi-lo)/r*100:.0f}%", f"{med(rs,'mb_s'):.0f}"]
        if lat:
            lb = {x["round"]: x["p50_us"] for x in res.get(base, [])}
            lr = [x["p50_us"] / lb[x["round"]] for x in rs if lb.get(x["round"])]
            row += [f"{med(rs,'p50_us'):.1f}", f"{med(rs,'p99_us'):.1f}", f"{st.median(lr):.2g}" if lr else "-"]
        row += [f"{cc:.2f} ({med(rs,'cli_sys'):.2f})", f"{sc:.2f} ({med(rs,'srv_sys'):.2f})", f"{(cc+sc)/r*1e6:.2f}",
                f"{med(rs,'cli_vcs')/n:.3f}", f"{med(rs,'srv_vcs')/n:.3f}"]
        if w == "w6": row += [f"{med(rs,'cli_peak_rss_kb')/1e3:.0f}", f"{med(rs,'srv_peak_rss_kb')/1e3:.0f}"]
        if w == "w5": row += [f"{med(rs,'rss_per_conn_kb'):.1f}", f"{med(rs,'srv_threads'):.0f}"]
        if k in errs: row[0] += f" (1 run failed: {errs[k]!s:.40})"
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()

if __name__ == "__main__":
    main()
