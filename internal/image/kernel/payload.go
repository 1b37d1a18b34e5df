package kernel

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// uncompressed returns the kernel that is packed in a bzImage, if QEMU can start it directly.
// Otherwise it returns the bzImage, which unpacks itself when it starts. See
// Documentation/arch/x86/boot.rst of the kernel.
func uncompressed(ctx context.Context, bzImage []byte) ([]byte, error) {
	const setupSects, magic, version, payloadOffset = 0x1f1, 0x202, 0x206, 0x248
	if len(bzImage) < payloadOffset+8 || string(bzImage[magic:magic+4]) != "HdrS" ||
		binary.LittleEndian.Uint16(bzImage[version:]) < 0x208 {
		return bzImage, nil // for another processor: such kernels are not packed like this
	}
	setup := uint64(bzImage[setupSects])
	if setup == 0 {
		setup = 4
	}
	from := (setup+1)*512 + uint64(binary.LittleEndian.Uint32(bzImage[payloadOffset:]))
	to := from + uint64(binary.LittleEndian.Uint32(bzImage[payloadOffset+4:]))
	if from >= to || to-from < 16 || to > uint64(len(bzImage)) {
		return nil, errors.New("the kernel is cut short")
	}
	kernel, err := unpack(ctx, bzImage[from:to])
	if err != nil {
		return nil, err
	}
	if !supportsPVH(kernel) {
		return bzImage, nil
	}
	return kernel, nil
}

// unpack unpacks a payload. The last four bytes are its unpacked size. They are part of the gzip
// format. For other formats, the kernel's makefiles append them.
func unpack(ctx context.Context, payload []byte) ([]byte, error) {
	end := len(payload) - 4
	want := binary.LittleEndian.Uint32(payload[end:])
	if want > maxKernelBytes {
		return nil, fmt.Errorf("the kernel is too large: %d bytes", want)
	}
	packed := payload[:end]
	if bytes.HasPrefix(packed, gzipMagic) {
		packed = payload
	}
	kernel, err := decompress(ctx, packed, maxKernelBytes)
	if err != nil {
		return nil, fmt.Errorf("the kernel cannot be unpacked: %w", err)
	}
	if len(kernel) != int(want) {
		return nil, fmt.Errorf("the kernel is damaged: it has %d bytes instead of %d", len(kernel), want)
	}
	return kernel, nil
}

// First bytes of compressed files.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	xzMagic   = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	lz4Magic  = []byte{0x02, 0x21, 0x4c, 0x18} // the legacy format of lz4, which kernels use
)

// decompress unpacks any format in which kernels and modules are compressed.
func decompress(ctx context.Context, packed []byte, most int) ([]byte, error) {
	var from io.Reader
	var err error
	switch {
	case bytes.HasPrefix(packed, gzipMagic):
		from, err = gzip.NewReader(bytes.NewReader(packed))
	case bytes.HasPrefix(packed, zstdMagic):
		z, bad := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(uint64(most)), zstd.WithDecoderMaxWindow(1<<27))
		if bad != nil {
			return nil, bad
		}
		defer z.Close()
		from = z
	case bytes.HasPrefix(packed, lz4Magic):
		from = lz4.NewReader(bytes.NewReader(packed))
	case bytes.HasPrefix(packed, xzMagic):
		// Use the program: a kernel is compressed with a filter (--x86) that no Go library
		// supports. The kernel is not trusted, so the program has no privileges.
		if _, err := exec.LookPath("xz"); err != nil {
			return nil, problem.New(problem.Unable,
				"xz is not installed, but the kernel of virtual machines is compressed with it").
				Try("install xz; orrery doctor lists what else this host lacks")
		}
		return host.Output(ctx, host.Unprivileged{},
			host.Command{Args: []string{"xz", "--decompress", "--stdout"}, Stdin: bytes.NewReader(packed)}, most)
	default:
		return nil, fmt.Errorf("its compression format is unknown: %x", packed[:min(len(packed), 8)])
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return text, err
}

// supportsPVH reports whether QEMU can start a kernel by the PVH protocol: an ELF file with a note
// of Xen that has the entry point.
func supportsPVH(kernel []byte) bool {
	f, err := elf.NewFile(bytes.NewReader(kernel))
	if err != nil {
		return false
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<20 {
			continue
		}
		notes := make([]byte, p.Filesz)
		if _, err := p.ReadAt(notes, 0); err == nil && hasPVHNote(notes, f.ByteOrder) {
			return true
		}
	}
	return false
}

// hasPVHNote reports whether notes contains XEN_ELFNOTE_PHYS32_ENTRY.
func hasPVHNote(notes []byte, order binary.ByteOrder) bool {
	const entry = 18
	up := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(notes) >= 12 {
		name, desc, kind := order.Uint32(notes), order.Uint32(notes[4:]), order.Uint32(notes[8:])
		notes = notes[12:]
		if up(name)+up(desc) > uint64(len(notes)) {
			return false
		}
		if kind == entry && bytes.HasPrefix(notes[:name], []byte("Xen\x00")) {
			return true
		}
		notes = notes[up(name)+up(desc):]
	}
	return false
}
