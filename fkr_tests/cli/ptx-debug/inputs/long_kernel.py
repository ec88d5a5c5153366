"""Prints a kernel of some 2,000 lines with one word load at a misaligned address, after line 800 of big.cu."""
COUNT = 1600
FILLER = ["add.u32 %r{0}, %r{1}, %seed;", "xor.b32 %r{0}, %r{1}, %r1;", "mul.lo.u32 %r{0}, %r{1}, 7;",
          "st.global.u32 [%out], %r{1};\n    mov.u32 %r{0}, %r{1};"]
print(f""".version 8.0
.target sm_75
.address_size 64
.file 1 "big.cu"
.global .align 4 .u32 unused[16];
.visible .entry big(.param .u64 .ptr .global .align 4 out, .param .u32 seed)
.maxntid 32, 1, 1
{{
    .reg .pred %others;
    .reg .b32 %r<{COUNT}>, %seed, %at, %word;
    .reg .b64 %out;
    .shared .align 16 .b8 table[256];
    ld.param.u64 %out, [out];
    ld.param.u32 %seed, [seed];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, table;
    add.u32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;""")
for i in range(5, COUNT):
    if i == COUNT // 2:
        print(f"""    .loc 1 {i} 1
    setp.ne.u32 %others, %r1, 0;
    @%others bra behind;
    add.u32 %at, %r3, 6;
    ld.shared.u32 %word, [%at];
    add.u32 %seed, %seed, %word;
behind:""")
    print("    " + FILLER[i % 4].format(i, i - 1))
print(f"    st.global.u32 [%out], %r{COUNT - 1};\n    ret;\n}}")
