// A mask that compares a block with a number of elements becomes the range of a loop, without a test for each element.

// TILE: [[N:%[0-9]+]] = arith.extsi %n : i32 to i64
// TILE: [[FIRST:%[0-9]+]] = arith.extsi %first : i32 to i64
// TILE: [[LEFT:%[0-9]+]] = arith.subi [[N]], [[FIRST]] : i64
// TILE: [[RANGE:%[0-9]+]] = tile.range {{%[0-9]+}} to {{%[0-9]+}}
// TILE: %a = tile.load %x{{\[}}[[FIRST]], {{%[0-9]+}}] in {{\[}}[[RANGE]]] :
// TILE: tile.store %sum to %out{{\[}}[[FIRST]], {{%[0-9]+}}] in {{\[}}[[RANGE]]] :
// TILE-NOT: arith.cmpi

// PLAN-NOT: memory

// One loop over vectors, one over what is left; nothing is stored but the result.
// WORKITEM: reqd_work_group_size = array<i32: 1, 1, 1>
// WORKITEM-NOT: llvm.alloca
// WORKITEM: scf.for {{.*}} step [[FOUR:%c[0-9]+]] : i64
// WORKITEM-COUNT-2: llvm.load {{.*}} : !global -> vector<4xf32>
// WORKITEM: arith.addf {{.*}} : vector<4xf32>
// WORKITEM-NEXT: arith.addi
// WORKITEM: llvm.store {{.*}} : vector<4xf32>, !global
// WORKITEM: scf.for
// WORKITEM-COUNT-2: llvm.load {{.*}} : !global -> f32
// WORKITEM: llvm.store {{.*}} : f32, !global
// WORKITEM-NOT: llvm.{{load|store}}

// All work-items wait before and after the store, and take turns of 32 vectors.
// WORKGROUP: reqd_work_group_size = array<i32: 32, 1, 1>
// WORKGROUP: [[STEP:%c[0-9]+]] = arith.constant 128 : i64
// WORKGROUP: [[ITEM:%v[0-9]+]] = llvm.call spir_funccc @"_Z12get_local_idj"
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP: [[OWN:%v[0-9]+]] = arith.muli [[ITEM]], {{%c[0-9]+}} : i64
// WORKGROUP: scf.for {{%v[0-9]+}} = [[OWN]] to {{%v[0-9]+}} step [[STEP]]
// WORKGROUP: llvm.store {{.*}} : vector<4xf32>, !global
// WORKGROUP: scf.for
// WORKGROUP: llvm.store {{.*}} : f32, !global
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP-NEXT: llvm.return

// Two rows come in by DMA, in multiples of 8 bytes; the result goes out with its exact size.
// TASKLET: scf.if
// TASKLET: "llvm.intr.memcpy"({{.*}}) <{arg_attrs = [{llvm.align = 8 : i64}, {llvm.align = 8 : i64}, {}], isVolatile = false}> : (!llvm.ptr, !global, i32) -> ()
// TASKLET: scf.if
// TASKLET: "llvm.intr.memcpy"({{.*}}) <{arg_attrs = [{llvm.align = 8 : i64}, {llvm.align = 8 : i64}, {}], isVolatile = false}> : (!llvm.ptr, !global, i32) -> ()
// TASKLET: scf.for
// TASKLET: arith.addf {{.*}} : f32
// TASKLET: "llvm.intr.memcpy"({{.*}}) <{arg_attrs = [{llvm.align = 4 : i64}, {llvm.align = 4 : i64}, {}], isVolatile = false}> : (!global, !llvm.ptr, i32) -> ()
// TASKLET-NEXT: }
// TASKLET-NOT: vector<

module {
  tt.func public @add(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
    %c64 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %c64 : i32
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %firsts = tt.splat %first : i32 -> tensor<64xi32>
    %offsets = arith.addi %firsts, %range : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %mask = arith.cmpi slt, %offsets, %ns : tensor<64xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %a = tt.load %xp, %mask : tensor<64x!tt.ptr<f32>>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %b = tt.load %yp, %mask : tensor<64x!tt.ptr<f32>>
    %sum = arith.addf %a, %b : tensor<64xf32>
    %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %op = tt.addptr %os, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %op, %sum, %mask : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
