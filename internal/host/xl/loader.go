package xl

import (
	"errors"
	"io/fs"
	"os"

	"orrery/internal/problem"
)

// Loaders are the boot loaders for guests by type. A boot loader runs in the guest and reads the
// kernel from its disk. So no program of the host reads what a guest has written there.
var Loaders = map[string]string{
	"pv":  "/usr/lib/grub-xen/grub-x86_64-xen.bin",
	"pvh": "/usr/lib/grub-xen/grub-i386-xen_pvh.bin",
}

// Loader returns the path of the boot loader for a type.
func Loader(kind string) (string, error) {
	path := Loaders[kind]
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", problem.New(problem.Unable, "the boot loader for disks of %s guests is not installed", kind).
			At(path).
			Try(`apt-get install grub-xen-host; or set xen.type = "hvm" to run the image's own`)
	}
	return path, err
}
