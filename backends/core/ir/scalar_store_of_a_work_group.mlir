// One work-item of a work-group writes a scalar, between barriers: what others read next must be there.

// WORKITEM-NOT: scf.if
// WORKITEM: llvm.store {{.*}} : f32, !global

// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP: scf.if
// WORKGROUP: llvm.store {{.*}} : f32, !global
// WORKGROUP: }
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"

module {
  tt.func public @k(%p: !tt.ptr<f32>, %value: f32) {
    %c0 = arith.constant 0 : i64
    tile.store %value to %p[%c0] : f32 to !tt.ptr<f32>
    tt.return
  }
}
