package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"path"

	"github.com/cavaliergopher/cpio"

	"orrery/internal/guest/boot"
)

// initramfs returns the archive that the kernel unpacks as its first root. It is not compressed,
// because the guest would have to decompress it.
func (s *kernelTree) initramfs(ctx context.Context, guest []byte) ([]byte, error) {
	a := &archive{}
	a.to = cpio.NewWriter(&a.all)
	for _, dir := range append([]string{boot.ModuleDir}, boot.MountPoints...) {
		a.add(dir, cpio.TypeDir|0o755, nil)
	}
	a.add(boot.Init, cpio.TypeReg|0o755, guest)
	wanted := s.initramfsModules()
	for i := range wanted {
		m := &wanted[i]
		text, err := s.module(ctx, m.File)
		if err != nil {
			return nil, err
		}
		m.File = m.Name + ".ko"
		a.add(path.Join(boot.ModuleDir, m.File), cpio.TypeReg|0o644, text)
	}
	list, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	a.add(boot.ModuleList, cpio.TypeReg|0o644, list)
	if a.err == nil {
		a.err = a.to.Close()
	}
	return a.all.Bytes(), a.err
}

// An archive is being written. It keeps the first error.
type archive struct {
	all bytes.Buffer
	to  *cpio.Writer
	n   int64
	err error
}

func (a *archive) add(name string, mode cpio.FileMode, content []byte) {
	if a.err != nil {
		return
	}
	a.n++
	if a.err = a.to.WriteHeader(&cpio.Header{Name: name, Mode: mode, Size: int64(len(content)), Inode: a.n,
		Links: 1}); a.err == nil {
		_, a.err = a.to.Write(content)
	}
}
