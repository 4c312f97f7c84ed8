// A program's place is the work-group's in OpenCL and a call of ours on a DPU; the grid's size is an argument in OpenCL.

// WORKITEM: %grid_x: i32, %grid_y: i32, %grid_z: i32
// WORKITEM: [[ONE:%c[0-9]+]] = arith.constant 1 : i32
// WORKITEM: llvm.call spir_funccc @"_Z12get_group_idj"([[ONE]])
// WORKITEM: arith.addi {{%v[0-9]+}}, %grid_z : i32
// TASKLET: [[ONE:%c[0-9]+]] = arith.constant 1 : i32
// TASKLET: llvm.call @"__triton_program_id"([[ONE]]) : (i32) -> i32
// TASKLET: llvm.call @"__triton_num_programs"

module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i64
    %y = tt.get_program_id y : i32
    %z = tt.get_num_programs z : i32
    %sum = arith.addi %y, %z : i32
    tile.store %sum to %p[%c0] : i32 to !tt.ptr<i32>
    tt.return
  }
}
