while (true) {
    auto context = UniquePtr<nvinfer1::IExecutionContext>(engine->createExecutionContext());
    void* buffers[2];
    cudaMalloc(&buffers[0], inSize);
    cudaMalloc(&buffers[1], outSize);
    cudaMemcpyAsync(buffers[0], host_in, inSize, cudaMemcpyHostToDevice, stream);
    context->enqueueV2(buffers, stream, nullptr);
    cudaMemcpyAsync(host_out, buffers[1], outSize, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaFree(buffers[0]);
    cudaFree(buffers[1]);
    // context destroyed here
}
