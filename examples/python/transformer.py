#!/usr/bin/python3
"""A small causal transformer on text with AdamW; done when the loss on other text is low enough.

    dynamix launch -n 2 -- /usr/bin/python3 examples/python/transformer.py
"""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

import dynamix.torch as dynamix
from data import texts

flags = argparse.ArgumentParser()
flags.add_argument("--epochs", type=int, default=20)
flags.add_argument("--samples", type=int)
flags.add_argument("--target", type=float, default=1.6, help="loss on the text that is judged")
flags = flags.parse_args()
LENGTH, WIDTH = 64, 64


class Transformer(nn.Module):
    """Returns its loss, so that the job sees it without a word."""

    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(WIDTH, 256)

    def forward(self, letters, following):
        mask = torch.full((LENGTH, LENGTH), -torch.inf).triu(1)
        hidden = self.letters(letters) + self.places.weight
        scores = self.head(self.layers(hidden, mask))
        return nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())


rank, size, _ = dynamix.init_process_group()
torch.manual_seed(1)
train, judged = texts(LENGTH, flags.samples)
model = nn.parallel.DistributedDataParallel(Transformer())
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
job = dynamix.adapt(model, optimizer, train, batch_size=16, epochs=flags.epochs,
                    target={"loss": flags.target})
for epoch in range(flags.epochs):
    for letters, following in job.batches(epoch):
        loss = model(letters, following)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        loss = model.module(*next(iter(DataLoader(judged, len(judged))))).item()
    if rank == 0:
        print(f"epoch {epoch}: loss {loss:.3f}, batches {job.batch_sizes}")
    if loss <= flags.target:  # the same on all ranks: they hold the same weights
        break
