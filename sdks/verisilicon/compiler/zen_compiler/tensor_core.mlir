// C += A B on the tensor core, as a command describes it. Here the program's own work-item computes it.
//
// %command: the program's command. %a, %b, %c: the tiles. %index, %x, %y, %z: which command of which program it must be.
// %m, %n: the extents of C. A wrong command fills C with NaN; nothing is computed from it.
llvm.func internal spir_funccc @zen_tc_matmul(%command: !llvm.ptr<1>, %a: $pointer, %b: $pointer, %c: $pointer,
    %index: i32, %x: i32, %y: i32, %z: i32, %m: i64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %lanes = arith.constant 16 : i64
  %no_sum = arith.constant 0 : i32

  // Is the command undamaged, and is it for this program?
  %words = arith.constant $words : i64
  %sum = scf.for %i = %zero to %words step %one iter_args(%before = %no_sum) -> (i32) : i64 {
    %place = llvm.getelementptr %command[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %word = llvm.load %place : !llvm.ptr<1> -> i32
    %after = arith.addi %before, %word : i32
    scf.yield %after : i32
  }
  %magic = arith.constant $magic_value : i32
  %opcode = arith.constant $opcode_value : i32
$loads
  %right0 = arith.cmpi eq, %is_magic, %magic : i32
  %right1 = arith.cmpi eq, %is_opcode, %opcode : i32
  %right2 = arith.cmpi eq, %is_index, %index : i32
  %right3 = arith.cmpi eq, %is_x, %x : i32
  %right4 = arith.cmpi eq, %is_y, %y : i32
  %right5 = arith.cmpi eq, %is_z, %z : i32
  %right6 = arith.cmpi eq, %is_checksum, %sum : i32
  %both0 = arith.andi %right0, %right1 : i1
  %both1 = arith.andi %right2, %right3 : i1
  %both2 = arith.andi %right4, %right5 : i1
  %both3 = arith.andi %both0, %both1 : i1
  %both4 = arith.andi %both2, %right6 : i1
  %right = arith.andi %both3, %both4 : i1

  scf.if %right {
    %rows = arith.extui %is_m : i32 to i64
    %columns = arith.extui %is_n : i32 to i64
    %products = arith.extui %is_k : i32 to i64
    %a_row = arith.extui %is_a_row : i32 to i64
    %a_column = arith.extui %is_a_column : i32 to i64
    %b_row = arith.extui %is_b_row : i32 to i64
    %b_column = arith.extui %is_b_column : i32 to i64
    %c_row = arith.extui %is_c_row : i32 to i64
    %c_column = arith.extui %is_c_column : i32 to i64
    // Sixteen elements of a row at a time if they are contiguous, then one at a time.
    %b_side_by_side = arith.cmpi eq, %b_column, %one : i64
    %c_side_by_side = arith.cmpi eq, %c_column, %one : i64
    %side_by_side = arith.andi %b_side_by_side, %c_side_by_side : i1
    %sixteens = arith.constant -16 : i64
    %whole = arith.andi %columns, %sixteens : i64
    %wide = arith.select %side_by_side, %whole, %zero : i64
    scf.for %i = %zero to %rows step %one : i64 {
      %a_start = arith.muli %i, %a_row : i64
      %c_start = arith.muli %i, %c_row : i64
      scf.for %j = %zero to %wide step %lanes : i64 {
        %c_offset = arith.addi %c_start, %j : i64
        %c_place = llvm.getelementptr %c[%c_offset] : ($pointer, i64) -> $pointer, f32
        %c_before = llvm.load %c_place {alignment = 4 : i64} : $pointer -> vector<16xf32>
        %c_after = scf.for %p = %zero to %products step %one iter_args(%c_sum = %c_before) -> (vector<16xf32>) : i64 {
          %a_further = arith.muli %p, %a_column : i64
          %a_offset = arith.addi %a_start, %a_further : i64
          %a_place = llvm.getelementptr %a[%a_offset] : ($pointer, i64) -> $pointer, f32
          %a_one = llvm.load %a_place {alignment = 4 : i64} : $pointer -> f32
          %a_all = vector.broadcast %a_one : f32 to vector<16xf32>
          %b_start = arith.muli %p, %b_row : i64
          %b_offset = arith.addi %b_start, %j : i64
          %b_place = llvm.getelementptr %b[%b_offset] : ($pointer, i64) -> $pointer, f32
          %b_all = llvm.load %b_place {alignment = 4 : i64} : $pointer -> vector<16xf32>
          %c_next = llvm.call spir_funccc @"$fma"(%a_all, %b_all, %c_sum)
              : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
          scf.yield %c_next : vector<16xf32>
        }
        llvm.store %c_after, %c_place {alignment = 4 : i64} : vector<16xf32>, $pointer
      }
      scf.for %j = %wide to %columns step %one : i64 {
        %c_further = arith.muli %j, %c_column : i64
        %c_offset = arith.addi %c_start, %c_further : i64
        %c_place = llvm.getelementptr %c[%c_offset] : ($pointer, i64) -> $pointer, f32
        %c_before = llvm.load %c_place : $pointer -> f32
        %c_after = scf.for %p = %zero to %products step %one iter_args(%c_sum = %c_before) -> (f32) : i64 {
          %a_further = arith.muli %p, %a_column : i64
          %a_offset = arith.addi %a_start, %a_further : i64
          %a_place = llvm.getelementptr %a[%a_offset] : ($pointer, i64) -> $pointer, f32
          %a_one = llvm.load %a_place : $pointer -> f32
          %b_start = arith.muli %p, %b_row : i64
          %b_further = arith.muli %j, %b_column : i64
          %b_offset = arith.addi %b_start, %b_further : i64
          %b_place = llvm.getelementptr %b[%b_offset] : ($pointer, i64) -> $pointer, f32
          %b_one = llvm.load %b_place : $pointer -> f32
          %both = arith.mulf %a_one, %b_one : f32
          %c_next = arith.addf %both, %c_sum : f32
          scf.yield %c_next : f32
        }
        llvm.store %c_after, %c_place : f32, $pointer
      }
    }
  } else {
    %nan = arith.constant 0x7FC00000 : f32
    %extent = arith.muli %m, %n : i64
    scf.for %i = %zero to %extent step %one : i64 {
      %place = llvm.getelementptr %c[%i] : ($pointer, i64) -> $pointer, f32
      llvm.store %nan, %place : f32, $pointer
    }
  }
  llvm.return
}
