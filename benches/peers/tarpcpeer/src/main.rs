//! tarpc 0.38 over TCP with the bincode codec. W2/W3 only. Callers are tasks that
//! share one client (one connection); the server runs each request inline.
use common::*;
use futures::StreamExt;
use std::time::{Duration, Instant};
use tarpc::server::{self, Channel};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::{client, context};

#[tarpc::service]
trait Echo {
    async fn echo(body: Vec<u8>) -> Vec<u8>;
}
#[derive(Clone)]
struct S;
impl Echo for S {
    async fn echo(self, _: context::Context, body: Vec<u8>) -> Vec<u8> {
        body
    }
}

fn main() {
    let a = Args::parse();
    let mut b = if a.variant == "cur" && a.role == "client" {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let rt = b.worker_threads(2).enable_all().build().unwrap();
    rt.block_on(async move { tokio::spawn(run(a)).await.unwrap() });
}

fn ctx() -> context::Context {
    let mut c = context::Context::current();
    c.deadline = Instant::now() + Duration::from_secs(30);
    c
}

async fn run(a: Args) {
    if a.role == "server" {
        let mut l = tarpc::serde_transport::tcp::listen(a.addr(), Bincode::default)
            .await
            .unwrap();
        server_ready();
        while let Some(Ok(t)) = l.next().await {
            let _ = t.get_ref().set_nodelay(true);
            let ch = server::BaseChannel::with_defaults(t);
            // inline execution: the handler is trivial, a task per request only costs
            tokio::spawn(ch.execute(S.serve()).for_each_concurrent(1024, |r| r));
        }
        return;
    }
    let t = tarpc::serde_transport::tcp::connect(a.addr(), Bincode::default)
        .await
        .unwrap();
    let _ = t.get_ref().set_nodelay(true);
    let c = EchoClient::new(client::Config::default(), t).spawn();
    for _ in 0..500 {
        c.echo(ctx(), template(a.size)).await.unwrap();
    }
    let mut run = Run::start(&a);
    let hs: Vec<_> = (0..a.threads)
        .map(|p| {
            let (a, c) = (a.clone(), c.clone());
            tokio::spawn(async move {
                let mut body = template(a.size);
                let n = a.share(p, a.threads);
                let mut lat = Vec::with_capacity(n as usize);
                let mut err = 0;
                let mut t = Instant::now();
                for i in 0..n {
                    stamp(&mut body, p % 8, i);
                    let r = c.echo(ctx(), body.clone()).await.unwrap();
                    err += (r != body) as u64;
                    let n = Instant::now();
                    lat.push(ns(n - t));
                    t = n;
                }
                (lat, err)
            })
        })
        .collect();
    for h in hs {
        let (l, e) = h.await.unwrap();
        run.lat.extend(l);
        run.errors += e;
    }
    let w = run.t0().elapsed();
    run.finish_with(a.count, w)
}
