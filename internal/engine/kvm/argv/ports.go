package argv

import (
	"fmt"
	"strconv"

	"orrery/internal/guest/boot"
	"orrery/internal/transport/rpc"
)

// recording is the number by which QEMU opens the file anew that it records the console in.
const recording = 1

// serial is the console. What it prints is recorded.
func serial(files *Files) []string {
	return []string{
		"-add-fd", fmt.Sprintf("fd=%d,set=%d", files.Take(Record), recording),
		"-chardev", listening("console", files.Take(Console)) + fmt.Sprintf(",logfile=/dev/fdset/%d,logappend=on",
			recording), "-serial", "chardev:console",
	}
}

// monitor is by which the engine gives QEMU orders.
func monitor(files *Files) []string {
	return []string{"-chardev", listening("monitor", files.Take(Monitor)), "-mon", "chardev=monitor,mode=control"}
}

// root is what virtiofsd gives.
func (m *Machine) root(files *Files) []string {
	device := "vhost-user-fs-pci,chardev=share,tag=" + boot.RootTag + ",queue-size=256"
	if !m.SparesKicks {
		device += ",event_idx=off"
	}
	return []string{"-chardev", fmt.Sprintf("socket,id=share,fd=%d", files.Take(Share)), "-device", device}
}

// agent is the way to the agent of the guest, and what makes its keys hard to guess.
func agent(files *Files) []string {
	args := []string{"-device", "virtio-rng-pci", "-device", "virtio-serial-pci"}
	for i := range rpc.Ports {
		id := "agent" + strconv.Itoa(i)
		args = append(args, "-chardev", listening(id, files.Take(Agent(i))), "-device",
			fmt.Sprintf("virtserialport,chardev=%s,name=%s.%d", id, rpc.PortName, i))
	}
	return args
}
