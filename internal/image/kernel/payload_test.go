package kernel

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// elfWith returns an ELF file with nothing but a note.
func elfWith(kind uint32, owner string) []byte {
	var note, all bytes.Buffer
	put := func(to *bytes.Buffer, x any) {
		binary.Write(to, binary.LittleEndian, x)
	} //nolint:errcheck // a buffer takes all
	put(&note, []uint32{4, 4, kind})
	note.WriteString(owner)
	put(&note, uint32(0x1000000))
	put(&all, elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}, Type: uint16(elf.ET_EXEC),
		Machine: uint16(elf.EM_X86_64),
		Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	})
	put(&all, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 120, Filesz: uint64(note.Len())})
	all.Write(note.Bytes())
	all.WriteString(strings.Repeat("a kernel ", 1000))
	return all.Bytes()
}

// bzImage packs a kernel as distributions do: a header with the position of the payload, which ends
// with its size.
func bzImage(kernel, packed []byte) []byte {
	image := make([]byte, 3*512+100)
	image[0x1f1] = 2
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(image[0x206:], 0x20f)
	if !bytes.HasPrefix(packed, gzipMagic) {
		packed = binary.LittleEndian.AppendUint32(bytes.Clone(packed), uint32(len(kernel)))
	}
	binary.LittleEndian.PutUint32(image[0x248:], 100)
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(packed)))
	return append(append(image, packed...), "what comes after it"...)
}

// packers compress as kernels are compressed.
var packers = map[string]func(t *testing.T, text []byte) []byte{
	"gzip": func(_ *testing.T, text []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(text) //nolint:errcheck // a buffer takes all
		z.Close()     //nolint:errcheck // likewise
		return b.Bytes()
	},
	"zstd": func(_ *testing.T, text []byte) []byte {
		z, _ := zstd.NewWriter(nil)
		return z.EncodeAll(text, nil)
	},
	"lz4": func(t *testing.T, text []byte) []byte {
		var b bytes.Buffer
		z := lz4.NewWriter(&b)
		if err := z.Apply(lz4.LegacyOption(true)); err != nil {
			t.Fatal(err)
		}
		z.Write(text) //nolint:errcheck // a buffer takes all
		z.Close()     //nolint:errcheck // likewise
		return b.Bytes()
	},
	"xz": func(t *testing.T, text []byte) []byte {
		// as scripts/xz_wrap.sh does
		cmd := exec.Command("xz", "--check=crc32", "--x86", "--lzma2=dict=32MiB", "--stdout")
		cmd.Stdin = bytes.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Skip("needs xz:", err)
		}
		return out
	},
}

func TestUncompressed(t *testing.T) {
	kernel := elfWith(18, "Xen\x00")
	for how, pack := range packers {
		t.Run(how, func(t *testing.T) {
			packed := pack(t, kernel)
			got, err := uncompressed(t.Context(), bzImage(kernel, packed))
			if err != nil || !bytes.Equal(got, kernel) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if _, err := uncompressed(t.Context(), bzImage(append(kernel, 0), packed)); how != "gzip" &&
				(err == nil || !strings.Contains(err.Error(), "damaged")) {
				t.Errorf("of another size: %v", err)
			}
			damaged := bzImage(kernel, packed[:len(packed)/2])
			if _, err := uncompressed(t.Context(), damaged); err == nil {
				t.Error("half of it is taken for a kernel")
			}
		})
	}
}

// TestNotAtOnce: a kernel that QEMU cannot start directly stays as it is packaged.
func TestNotAtOnce(t *testing.T) {
	pack := packers["gzip"]
	for name, image := range map[string][]byte{
		"no note":      bzImage(nil, pack(t, elfWith(17, "Xen\x00"))),
		"others' note": bzImage(nil, pack(t, elfWith(18, "GNU\x00"))),
		"no ELF":       bzImage(nil, pack(t, []byte("something else"))),
		"no bzImage":   []byte("MZ a kernel for another processor"),
	} {
		if got, err := uncompressed(t.Context(), image); err != nil || !bytes.Equal(got, image) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func FuzzUncompressed(f *testing.F) {
	kernel := elfWith(18, "Xen\x00")
	f.Add(bzImage(kernel, packers["gzip"](nil, kernel)))
	f.Add(bzImage(kernel, packers["zstd"](nil, kernel)))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, image []byte) {
		if len(image) < 1<<16 && !bytes.Contains(image, xzMagic) { // each of these would start a process
			uncompressed(context.Background(), image) //nolint:errcheck // it must not panic
		}
	})
}
