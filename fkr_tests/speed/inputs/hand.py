#!/usr/bin/env python3
"""Writes hand.ptx: PTX as people and old programs write it, a short function for each habit, repeated under other
names: nested scopes, predicates declared in place, prototypes, tables of labels, textures, long vectors, tensor cores,
barriers in memory, initial values, comments of both kinds.

usage: hand.py > hand.ptx
"""

HEAD = """// Written by hand.py; the two belong together.
.version 8.6
.target sm_90a
.address_size 64

/* What several
   functions share. */
.global .align 16 .b8 first[64] = {0x00, 255, 012, 0x7f};
.global .align 8 .u64 pointers[4] = {first, generic(first), first + 8, 0};
.const .align 4 .f32 constants[2][3] = {{0f3F800000, 0f40000000, 0f40400000}, {1.5, -2.25, 1e-3}};
.extern .shared .align 128 .b8 dynamic[];
.global .texref image;
.extern .func (.param .b32 result) helper(.param .b32 value, .param .align 8 .b8 aggregate[24]);
"""

ARITHMETIC = """
.func (.reg .u32 %result) fold_{n}(.reg .u32 %a, .reg .u32 %b) {{
  .reg .u32 %t<4>; .reg .u64 wide; .reg .pred even, p;
  add.cc.u32  %t0, %a, %b;      addc.u32 %t1, 0, {n};
  mad.lo.u32  %t2, %t0, 0x9E3779B1, %t1;
  shf.l.wrap.b32 %t3, %t2, %t2, {shift};
  and.b32 %t1, %t3, 1;
  setp.eq.u32 even|p, %t1, 0;
@even  xor.b32 %t3, %t3, ~{n};
@!even lop3.b32 %t3, %t0, %t2, %t3, 0x96;
@p bra odd;
  {{ // a scope of its own, with a label of the same name inside
    .reg .u32 %t0;
    mov.u32 %t0, %laneid;
    bra.uni odd;
  odd:
    popc.b32 %t3, %t0;
  }}
odd:
  mul.wide.u32 wide, %t3, %t2;
  {{ .reg .b32 low, high; mov.b64 {{low, high}}, wide; xor.b32 %result, low, high; }}
  ret;
}}
"""

CONTROL = """
.visible .entry choose_{n}(.param .u64 .ptr .global .align 4 choose_{n}_out, .param .u32 choose_{n}_which)
.maxntid 128, 1, 1
.minnctapersm 2
{{
  .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<6>;
  .local .align 8 .b8 stack[24];
  .param .b32 returned;
  ld.param.u64 %rd0, [choose_{n}_out];
  cvta.to.global.u64 %rd1, %rd0;
  ld.param.u32 %r0, [choose_{n}_which];
  setp.hi.u32 %p0, %r0, 3;
  @%p0 bra $done;
targets: .branchtargets $zero, $one, $two, $three;
  brx.idx %r0, targets;
$zero: mov.u32 %r1, {n}; bra $done;
$one:  mov.u32 %r1, -{n};
$two:
  {{
    .param .b32 value; .param .align 8 .b8 aggregate[24];
    st.param.b32 [value], %r1;
    st.param.v2.b64 [aggregate + 0], {{%rd0, %rd1}};
    st.param.b64 [aggregate+16], %rd1;
    call.uni (returned), helper, (value, aggregate);
    ld.param.b32 %r1, [returned];
  }}
  bra.uni $done;
$three:
  mov.u64 %rd2, fold_{n};
signature: .callprototype (.reg .u32 _) _ (.reg .u32 _, .reg .u32 _);
  call (%r1), %rd2, (%r0, %r0), signature;
  st.local.u32 [stack+4], %r1;
  ld.local.v2.b32 {{%r2, %r3}}, [stack];
$done:
  mad.wide.u32 %rd3, %r0, 4, %rd1;
  st.global.u32 [%rd3], %r1;
  atom.global.add.u32 %r4, [%rd3 + 4], 1;
  red.relaxed.gpu.global.max.s32 [%rd3+8], %r4;
  ld.global.nc.L1::no_allocate.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd1+16];
  st.global.v4.b32 [%rd1 + {offset}], {{%r7, %r6, %r5, %r4}};
  exit;
}}
"""

TEXTURE = """
.entry sample_{n}(.param .u64 out)
{{
  .reg .f32 %f<8>; .reg .b32 x, y; .reg .u64 a;
  ld.param.u64 a, [out];
  mov.u32 x, %tid.x; mov.u32 y, %ctaid.y;
  cvt.rn.f32.u32 %f0, x; cvt.rn.f32.u32 %f1, y;
  tex.2d.v4.f32.f32 {{%f2, %f3, %f4, %f5}}, [image, {{%f0, %f1}}];
  fma.rn.ftz.f32 %f6, %f2, 0f3F000000, %f3;
  ex2.approx.ftz.f32 %f7, %f6; sqrt.rn.f32 %f6, %f7; div.full.f32 %f7, %f6, %f5;
  st.global.f32 [a], %f7;
  ret;
}}
"""

TENSOR = """
.visible .entry tensor_{n}(.param .align 64 .b8 map[128], .param .u64 out)
.reqntid 128
{{
  .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .f32 %f<64>; .reg .pred %p; .reg .b16 %h<4>;
  .shared .align 8 .b64 full;
  mov.u64 %rd0, map; cvta.param.u64 %rd0, %rd0;
  mov.u32 %r0, dynamic; mov.u32 %r1, full;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {bytes};
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0, {{%r2, %r3}}], [%r1];
again:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%r1], 0;
@!%p bra again;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{{registers}}}, %rd1, %rd2, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r0];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f0, %f1, %f2, %f3}}, {{%r4, %r5, %r6, %r7}}, {{%r4, %r5}}, {{%f0, %f1, %f2, %f3}};
  cvt.rn.bf16x2.f32 %r4, %f0, %f1;
  fma.rn.bf16x2 %r4, %r4, %r5, %r6;
  shfl.sync.bfly.b32 %r5|%p, %r4, 16, 0x1f, 0xffffffff;
  redux.sync.add.s32 %r6, %r5, 0xffffffff;
  vote.sync.ballot.b32 %r7, %p, -1;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %r6, [%r1];
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
}}
"""


def main():
    registers = ", ".join(f"%f{i}" for i in range(64))
    print(HEAD, end="")
    for n in range(1, 17):
        print(ARITHMETIC.format(n=n, shift=n % 31), end="")
        print(CONTROL.format(n=n, offset=32 + 16 * n), end="")
        print(TEXTURE.format(n=n), end="")
        print(TENSOR.format(n=n, bytes=1024 * n, registers=registers), end="")


if __name__ == "__main__":
    main()
