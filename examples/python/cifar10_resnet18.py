#!/usr/bin/python3
"""torchvision's ResNet18 on CIFAR-10: loader workers, a scheduler, several parameter groups.

    dynamix launch -n 2 -- /usr/bin/python3 examples/python/cifar10_resnet18.py
"""
import argparse

import torch
import torchvision
from torch import nn

import dynamix.torch as dynamix
from data import cifar10

flags = argparse.ArgumentParser()
flags.add_argument("--epochs", type=int, default=30)
flags.add_argument("--samples", type=int)
flags = flags.parse_args()

rank, size, local_rank = dynamix.init_process_group()
device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(1)
net = torchvision.models.resnet18(num_classes=10)
net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()  # 32 x 32 images
if device.type == "cuda":
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
net = net.to(device)
# Statistics of batch norm stay each rank's own; job.average_buffers() joins them, by batch.
model = nn.parallel.DistributedDataParallel(net, broadcast_buffers=False)
norms = [p for p in net.parameters() if p.dim() == 1]
others = [p for p in net.parameters() if p.dim() > 1]
optimizer = torch.optim.SGD([{"params": others, "weight_decay": 5e-4}, {"params": norms}], lr=0.05,
                            momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, flags.epochs)
job = dynamix.adapt(model, optimizer, cifar10(flags.samples), batch_size=64, epochs=flags.epochs,
                    schedule="cosine", loader={"num_workers": 1, "persistent_workers": True,
                                               "pin_memory": device.type == "cuda"})
for epoch in range(flags.epochs):
    for images, labels in job.batches(epoch):
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        scores = model(images)
        loss = nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        job.report(loss=loss, accuracy=(scores.argmax(1) == labels).float().mean())
    scheduler.step()
    job.average_buffers()
    if rank == 0:
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(),
                    "job": job.state_dict()}, "cifar10_resnet18.pt")
        print(f"epoch {epoch}: {job.summary()}")
