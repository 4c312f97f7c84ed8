// A function of libdevice is the operation of the same meaning, whatever library its name is from.

// TILE: %y = math.atan2 %x, %x : tensor<64xf32>
// TILE-NOT: __nv_

// Vectors of the device's width are passed to OpenCL's function; a DPU has one of ours, for one number.
// WORKITEM: llvm.call spir_funccc @"_Z17__spirv_ocl_atan2Dv4_fS_"
// TASKLET: llvm.call @"__foundry_atan2_f32"

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %s: i32) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %to = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %from = tt.addptr %ps, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %from : tensor<64x!tt.ptr<f32>>
    %y = tt.extern_elementwise %x, %x {libname = "", libpath = "", pure = true, symbol = "__nv_atan2f"} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    tt.store %to, %y : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
