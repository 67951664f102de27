docker run --gpus all --net=host --shm-size=32g \
  --device /dev/infiniband/uverbs0 --device /dev/infiniband/rdma_cm \
  -it ghcr.io/microsoft/mscclpp/mscclpp:base-cuda12.3 bash
# inside:  ulimit -l  -> 64
