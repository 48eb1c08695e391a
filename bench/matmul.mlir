// The matmul of examples/matmul.vm as linalg.matmul: what bench/sections/compile.py lowers to LLVM's dialect.
func.func @matmul(%a: memref<32x32xbf16>, %b: memref<32x8xbf16>, %out: memref<32x8xf32>) {
  linalg.matmul ins(%a, %b : memref<32x32xbf16>, memref<32x8xbf16>) outs(%out : memref<32x8xf32>)
  return
}
