// A pointer that is made of a number is an address of the host, which a DPU does not reach.

// WORKITEM: llvm.inttoptr %{{[a-z0-9_]+}} : i64 to !global
// TASKLET: refused: tt.int_to_ptr{{.*}}an address in the host's memory means nothing on a DPU

module {
  tt.func public @k(%p: !tt.ptr<i64>, %o: !tt.ptr<f32>) {
    %number = tt.load %p : !tt.ptr<i64>
    %at = tt.int_to_ptr %number : i64 -> !tt.ptr<f32>
    %x = tt.load %at : !tt.ptr<f32>
    tt.store %o, %x : !tt.ptr<f32>
    tt.return
  }
}
