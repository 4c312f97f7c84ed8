# Switches between the scheduler's stack and a tasklet's. Offsets are those of Context in switch.h.

        .intel_syntax noprefix
        .set AT_RSP, 0
        .set AT_RBX, 8
        .set AT_RBP, 16
        .set AT_R12, 24
        .set AT_R13, 32
        .set AT_R14, 40
        .set AT_R15, 48
        .set AT_OP, 56
        .set AT_A, 60
        .set AT_B, 64
        .set AT_C, 68
        .set AT_RESULT, 72
        .set AT_FULL, 80
        .set AT_SCRATCH, 88
        .set AT_VECTORS, 160
        .set OP_RACE, 0xfffffffe

        .text
        .globl foundry_resume, foundry_service_entry, foundry_yield_entry, foundry_access_entry, foundry_abandon
        .hidden foundry_resume, foundry_service_entry, foundry_yield_entry, foundry_access_entry, foundry_abandon
        .hidden foundry_current, foundry_access, foundry_access_own

        .type foundry_resume, @function
foundry_resume:
        push rbx
        push rbp
        push r12
        push r13
        push r14
        push r15
        mov [rip + scheduler_rsp], rsp
        mov [rip + foundry_current], rdi
        mov rsp, [rdi + AT_RSP]
        mov rbx, [rdi + AT_RBX]
        mov rbp, [rdi + AT_RBP]
        mov r12, [rdi + AT_R12]
        mov r13, [rdi + AT_R13]
        mov r14, [rdi + AT_R14]
        mov r15, [rdi + AT_R15]
        mov rax, [rdi + AT_RESULT]
        cmp qword ptr [rdi + AT_FULL], 0
        jne 1f
        ret
1:      mov qword ptr [rdi + AT_FULL], 0
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups xmm\n, [rdi + AT_VECTORS + 16 * \n]
        .endr
        mov rax, [rdi + AT_SCRATCH]
        mov rcx, [rdi + AT_SCRATCH + 8]
        mov rdx, [rdi + AT_SCRATCH + 16]
        mov rsi, [rdi + AT_SCRATCH + 24]
        mov r8, [rdi + AT_SCRATCH + 40]
        mov r9, [rdi + AT_SCRATCH + 48]
        mov r10, [rdi + AT_SCRATCH + 56]
        mov rdi, [rdi + AT_SCRATCH + 32]
        ret
        .size foundry_resume, . - foundry_resume

# A tasklet calls a service: callee-saved registers are preserved.
        .type foundry_service_entry, @function
foundry_service_entry:
        mov r11, [rip + foundry_current]
        mov [r11 + AT_OP], edi
        mov [r11 + AT_A], esi
        mov [r11 + AT_B], edx
        mov [r11 + AT_C], ecx
leave:  mov [r11 + AT_RSP], rsp
        mov [r11 + AT_RBX], rbx
        mov [r11 + AT_RBP], rbp
        mov [r11 + AT_R12], r12
        mov [r11 + AT_R13], r13
        mov [r11 + AT_R14], r14
        mov [r11 + AT_R15], r15
        jmp foundry_abandon
        .size foundry_service_entry, . - foundry_service_entry

# A tasklet yields in a loop: everything is kept but r11. Nothing is pushed: the tasklet's stack may be full.
        .type foundry_yield_entry, @function
foundry_yield_entry:
        mov r11, [rip + foundry_current]
        mov [r11 + AT_SCRATCH], rax
        mov [r11 + AT_SCRATCH + 8], rcx
        mov [r11 + AT_SCRATCH + 16], rdx
        mov [r11 + AT_SCRATCH + 24], rsi
        mov [r11 + AT_SCRATCH + 32], rdi
        mov [r11 + AT_SCRATCH + 40], r8
        mov [r11 + AT_SCRATCH + 48], r9
        mov [r11 + AT_SCRATCH + 56], r10
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups [r11 + AT_VECTORS + 16 * \n], xmm\n
        .endr
        mov qword ptr [r11 + AT_FULL], 1
        mov dword ptr [r11 + AT_OP], 0
        jmp leave
        .size foundry_yield_entry, . - foundry_yield_entry

# A tasklet is about to access WRAM: foundry_access looks at it on the scheduler's stack. Everything is kept but r11.
        .type foundry_access_entry, @function
foundry_access_entry:
        mov r11, [rip + foundry_current]
        mov [r11 + AT_SCRATCH], rax
        mov [r11 + AT_SCRATCH + 8], rcx
        mov [r11 + AT_SCRATCH + 16], rdx
        mov [r11 + AT_SCRATCH + 24], rsi
        mov [r11 + AT_SCRATCH + 32], rdi
        mov [r11 + AT_SCRATCH + 40], r8
        mov [r11 + AT_SCRATCH + 48], r9
        mov [r11 + AT_SCRATCH + 56], r10
        mov [r11 + AT_RSP], rsp
        mov r8d, [rsp]
        mov rsp, [rip + scheduler_rsp]
        and rsp, -16
        push r11
        sub rsp, 8
        call foundry_access_own
        mov r11, [rsp + 8]
        test al, al
        jne 2f
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups [r11 + AT_VECTORS + 16 * \n], xmm\n
        .endr
        mov rcx, [r11 + AT_SCRATCH + 8]
        mov rdx, [r11 + AT_SCRATCH + 16]
        mov rsi, [r11 + AT_SCRATCH + 24]
        mov rdi, [r11 + AT_SCRATCH + 32]
        mov r8, [r11 + AT_RSP]
        mov r8d, [r8]
        call foundry_access
        mov r11, [rsp + 8]
        test al, al
        jne 1f
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups xmm\n, [r11 + AT_VECTORS + 16 * \n]
        .endr
2:      mov rax, [r11 + AT_SCRATCH]
        mov rcx, [r11 + AT_SCRATCH + 8]
        mov rdx, [r11 + AT_SCRATCH + 16]
        mov rsi, [r11 + AT_SCRATCH + 24]
        mov rdi, [r11 + AT_SCRATCH + 32]
        mov r8, [r11 + AT_SCRATCH + 40]
        mov r9, [r11 + AT_SCRATCH + 48]
        mov r10, [r11 + AT_SCRATCH + 56]
        mov rsp, [r11 + AT_RSP]
        ret
1:      mov dword ptr [r11 + AT_OP], OP_RACE
        jmp foundry_abandon
        .size foundry_access_entry, . - foundry_access_entry

# Back to the scheduler, out of foundry_resume. Signal handlers return to here.
        .type foundry_abandon, @function
foundry_abandon:
        mov rsp, [rip + scheduler_rsp]
        mov qword ptr [rip + foundry_current], 0
        pop r15
        pop r14
        pop r13
        pop r12
        pop rbp
        pop rbx
        ret
        .size foundry_abandon, . - foundry_abandon

        .bss
        .balign 8
        .globl foundry_current
        .type foundry_current, @object
        .size foundry_current, 8
foundry_current:
        .skip 8
scheduler_rsp:
        .skip 8

        .section .note.GNU-stack, "", @progbits
