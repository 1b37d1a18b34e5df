package host

import "golang.org/x/sys/unix"

// TotalMemory returns the memory of this machine in bytes.
func TotalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
