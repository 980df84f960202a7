#%% PPO, cells of a notebook put into one file
import sys
import torch, torch.nn as nn, torch.nn.functional as F

N_ENV, T, OBS, N_ACT = 2048, 32, 1024, 12
torch.manual_seed(7)
dev = "cuda"

#%% networks
trunk = nn.Sequential(nn.Linear(OBS, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh()).to(dev)
pi = nn.Linear(1024, N_ACT).to(dev)
vf = nn.Linear(1024, 1).to(dev)
weights = [*trunk.parameters(), *pi.parameters(), *vf.parameters()]
opt = torch.optim.Adam(weights, lr=2.5e-4, eps=1e-5)

#%% environment
effect = torch.randn(N_ACT, OBS, device=dev) * 0.2
obs = torch.randn(N_ENV, OBS, device=dev)

def env_step(obs, act):
    nxt = 0.95 * obs + effect[act]
    return nxt, -nxt[:, :8].square().mean(1)

#%% rollout
@torch.no_grad()
def rollout(obs):
    steps = []
    for _ in range(T):
        h = trunk(obs)
        logp = F.log_softmax(pi(h), dim=1)
        act = torch.multinomial(logp.exp(), 1).squeeze(1)
        nxt, rew = env_step(obs, act)
        steps.append((obs, act, logp.gather(1, act[:, None]).squeeze(1), vf(h).squeeze(1), rew))
        obs = nxt
    last = vf(trunk(obs)).squeeze(1)
    adv, run = [], torch.zeros(N_ENV, device=dev)
    values = [s[3] for s in steps] + [last]
    for t in reversed(range(T)):
        delta = steps[t][4] + 0.99 * values[t + 1] - values[t]
        run = delta + 0.99 * 0.95 * run
        adv.append(run)
    return obs, steps, adv[::-1]

#%% update
def update(steps, adv, epochs=2, minibatches=8):
    total = 0.0
    for _ in range(epochs):
        for chunk in torch.randperm(T).chunk(minibatches):
            idx = chunk.tolist()
            o, a, old, v = (torch.cat([steps[t][k] for t in idx]) for k in range(4))
            A = torch.cat([adv[t] for t in idx])
            h = trunk(o)
            logp_all = F.log_softmax(pi(h), dim=1)
            ratio = (logp_all.gather(1, a[:, None]).squeeze(1) - old).exp()
            An = (A - A.mean()) / (A.std() + 1e-8)
            loss = torch.max(-An * ratio, -An * ratio.clamp(0.8, 1.2)).mean()
            loss = loss + 0.5 * F.mse_loss(vf(h).squeeze(1), A + v) + 0.01 * (logp_all.exp() * logp_all).sum(1).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 0.5)
            opt.step()
            opt.zero_grad()
            total += loss.item()
            del o, h, logp_all, loss
    return total

def train_iteration(obs):
    obs, steps, adv = rollout(obs)
    return obs, update(steps, adv), adv[0]

#%% go; the first two iterations are warm-up and not recorded
curve = []
for it in range(8):
    if it == 2:
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=300000)
    obs, total, first_adv = train_iteration(obs)   # first_adv: for the plot at the end
    curve.append(total)
torch.cuda.memory._dump_snapshot(sys.argv[1])

#%% "plot"
print(curve, first_adv.mean().item())
