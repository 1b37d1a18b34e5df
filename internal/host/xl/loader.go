package xl

import (
	"errors"
	"io/fs"
	"os"

	"orrery/internal/problem"
)

// Loaders are boot loaders for guests of a type, which run as one and read the kernel from its
// disk: nothing of the host reads what a guest has written there.
var Loaders = map[string]string{
	"pv":  "/usr/lib/grub-xen/grub-x86_64-xen.bin",
	"pvh": "/usr/lib/grub-xen/grub-i386-xen_pvh.bin",
}

// Loader returns that of a type.
func Loader(kind string) (string, error) {
	path := Loaders[kind]
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", problem.New(problem.Unable, "the boot loader for disks of guests of the type %s is not installed", kind).
			At(path).
			Try(`apt-get install grub-xen-host; or write xen.type = "hvm", by which the image's own is run`)
	}
	return path, err
}
