/* FIFOs in WRAM, through which the host feeds a running program. */
#error "the emulator has no FIFOs in WRAM: its host library does not reach WRAM while a DPU runs"
