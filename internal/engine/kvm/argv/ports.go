package argv

import (
	"fmt"
	"strconv"

	"orrery/internal/guest/boot"
	"orrery/internal/transport/rpc"
)

// recordFDSet is the id of the fdset through which QEMU opens the file for the console's output
// again.
const recordFDSet = 1

// serial returns the console, whose output is recorded.
func serial(files *Files) []string {
	return []string{
		"-add-fd", fmt.Sprintf("fd=%d,set=%d", files.Add(Record), recordFDSet),
		"-chardev", listeningSocket("console", files.Add(Console)) + fmt.Sprintf(",logfile=/dev/fdset/%d,logappend=on",
			recordFDSet), "-serial", "chardev:console",
	}
}

// monitor returns the monitor through which the engine controls QEMU.
func monitor(files *Files) []string {
	return []string{"-chardev", listeningSocket("monitor", files.Add(Monitor)), "-mon", "chardev=monitor,mode=control"}
}

// root returns the root file system from virtiofsd.
func (m *Machine) root(files *Files) []string {
	device := "vhost-user-fs-pci,chardev=share,tag=" + boot.RootTag + ",queue-size=256"
	if !m.SparesKicks {
		device += ",event_idx=off"
	}
	return []string{"-chardev", fmt.Sprintf("socket,id=share,fd=%d", files.Add(Share)), "-device", device}
}

// agent returns the ports to the guest's agent, and a random number generator for its keys.
func agent(files *Files) []string {
	args := []string{"-device", "virtio-rng-pci", "-device", "virtio-serial-pci"}
	for i := range rpc.Ports {
		id := "agent" + strconv.Itoa(i)
		args = append(args, "-chardev", listeningSocket(id, files.Add(Agent(i))), "-device",
			fmt.Sprintf("virtserialport,chardev=%s,name=%s.%d", id, rpc.PortName, i))
	}
	return args
}
