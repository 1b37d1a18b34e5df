package xen

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"orrery/internal/guest/boot"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/pattern"
	"orrery/internal/transport/rpc"
)

// ports is the number of a guest's ports for clients. The guest's kernel has eight consoles. One of
// them is the guest's own console. Another stands in for the one that Xen up to 4.20 loses: it
// gives the first channel the number of the guest's console, and then omits it.
const ports = 6

// A domain describes a node to Xen.
type domain struct {
	name              string
	kernel, initramfs string  // paths
	model             string  // path of the program to start as the device model
	shares            []share // the first is the root; none if the guest boots a disk
	drives            []drive
	run               string // directory of sockets and scripts
}

// A share is a directory that the guest mounts.
type share struct {
	tag  string
	dir  string // as the backend sees it
	path string // in the guest
}

// config returns the domain's configuration (xl.cfg(5)).
func (d *domain) config(n *spec.Node) (string, error) {
	boots, err := d.bootConfig(n)
	if err != nil {
		return "", err
	}
	kind := n.Xen.Kind()
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Node %s of site %s. Orrery rewrites this file whenever the node starts.", n.Name, n.Site)
	say("name = %s\nuuid = %s\ntype = %s", quote(d.name), quote(uuid(n.MachineID)), quote(kind))
	say("%s", boots)
	say("memory = %d\nmaxmem = %[1]d\nvcpus = %d", n.GuestMemory()>>20, n.Limits.VCPUs())
	if n.Limits.Cpus > 0 && n.Limits.Cpus < float64(n.Limits.VCPUs()) {
		// no cap is needed if whole processors are assigned
		say("cap = %d", int(math.Ceil(n.Limits.Cpus*100)))
	}
	if n.Limits.Pin != "" {
		say("cpus = %s", quote(n.Limits.Pin))
	}
	say("on_poweroff = \"destroy\"\non_reboot = \"restart\"\non_watchdog = \"restart\"\non_crash = \"destroy\"")
	say("device_model_override = %s", quote(d.model))
	if kind == site.HVM {
		say("vga = \"none\"\nvnc = 0\nusb = 0\nxen_platform_pci = 1")
	}
	var cards, shares, channels []string
	for i, nic := range n.NICs {
		cards = append(cards, fmt.Sprintf("mac=%s,vifname=%s,bridge=%s,script=%s,type=vif", nic.MAC, nic.HostIfName,
			nic.Bridge, d.linkScriptPath(i)))
	}
	for _, s := range d.shares {
		shares = append(shares, fmt.Sprintf("tag=%s,security_model=none,path=%s", s.tag, s.dir))
	}
	say("vif = %s", quoteList(cards))
	if len(d.drives) > 0 {
		say("disk = %s", quoteList(d.disks()))
	}
	if n.Imported() { // no agent of Orrery is in it
		return b.String(), d.checkPaths(b.String())
	}
	channels = append(channels, "name=none,connection=socket,path="+d.run+"/none.sock")
	for i := range ports {
		channels = append(channels, fmt.Sprintf("name=%s.%d,connection=socket,path=%s/%s", rpc.PortName, i, d.run,
			rpc.SocketName(i)))
	}
	say("p9 = %s\nchannel = %s", quoteList(shares), quoteList(channels))
	return b.String(), d.checkPaths(b.String())
}

// bootConfig returns what the domain boots. For a layered node that is the node's kernel. For a foreign
// disk it is a boot loader in the guest, or the firmware of an emulated machine.
func (d *domain) bootConfig(n *spec.Node) (string, error) {
	switch {
	case !n.Imported():
		line, err := d.kernelLine(n)
		return fmt.Sprintf("kernel = %s\nramdisk = %s\ncmdline = %s", quote(d.kernel), quote(d.initramfs), quote(line)), err
	case n.Xen.Kind() == site.HVM:
		return "bios = \"seabios\"\nboot = \"c\"\nserial = \"pty\"", nil
	}
	return "kernel = " + quote(d.kernel), nil
}

// linkScriptPath returns the path of the script that is run when a card of the guest appears.
func (d *domain) linkScriptPath(i int) string { return d.run + "/link" + strconv.Itoa(i) }

// safePath matches the paths that the toolstack can read, because its lists have no quoting for other
// characters.
var safePath = pattern.New(`^/[A-Za-z0-9._/+@:-]*$`)

// maxPathBytes is the maximum length of a socket's path (sun_path of unix(7)).
const maxPathBytes = 107

// checkPaths returns a problem if a path would be misread by the toolstack or is too long.
func (d *domain) checkPaths(string) error {
	paths := []string{d.kernel, d.initramfs, d.model, d.run}
	for _, s := range d.shares {
		paths = append(paths, s.dir)
	}
	for _, drive := range d.drives {
		paths = append(paths, drive.path)
	}
	for _, path := range paths {
		if path != "" && !safePath().MatchString(path) {
			return problem.New(problem.Unable, "Xen's toolstack does not accept the path %q", path).
				Try("set ORRERY_STATE and ORRERY_RUN to directories whose names contain only letters, digits and dashes")
		}
	}
	if len(d.run)+1+len(rpc.SocketName(ports)) > maxPathBytes {
		return problem.New(problem.Unable, "the path of the sockets of %s is too long", d.name).At(d.run).
			Try("set ORRERY_RUN to a shorter one")
	}
	return nil
}

// maxLineBytes is the maximum length of the kernel's command line for a guest of the type PV. The
// rest would be cut off (MAX_GUEST_CMDLINE of Xen's public/xen.h).
const maxLineBytes = 1023

// kernelLine returns the command line of the guest's kernel (kernel-parameters.txt) with the
// configuration for orrery-guest.
func (d *domain) kernelLine(n *spec.Node) (string, error) {
	config := boot.Config{Root: boot.NinePXen, Hostname: n.Name}
	for _, s := range d.shares[1:] {
		config.Mounts = append(config.Mounts, boot.Mount{Tag: s.tag, Path: s.path})
	}
	for _, nic := range n.NICs {
		config.NICs = append(config.NICs, boot.NIC{MAC: nic.MAC, Name: nic.Name, Address: nic.Address, Gateway: nic.Gateway,
			MTU: nic.MTU})
	}
	word, err := config.Encode()
	if err != nil {
		return "", err
	}
	// Orrery-guest names the cards. There is no login on a console, and no screen.
	line := strings.Join([]string{"console=hvc0", "quiet", "net.ifnames=0", "systemd.getty_auto=no",
		"systemd.mask=getty@tty1.service", word}, " ")
	if n.Xen.Kind() == site.PV && len(line) > maxLineBytes {
		return "", problem.New(problem.Mistake,
			"node %s: its networks and volumes need %d bytes, and a pv guest accepts %d", n.Name, len(line),
			maxLineBytes).
			Try(`write xen.type = "pvh", or remove some networks or volumes`)
	}
	return line, nil
}

// uuid returns a machine-id in Xen's format.
func uuid(id string) string {
	if len(id) != 32 {
		return "00000000-0000-0000-0000-000000000000"
	}
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

func quote(text string) string { return `"` + text + `"` }

func quoteList(all []string) string {
	var quoted []string
	for _, one := range all {
		quoted = append(quoted, quote(one))
	}
	return "[ " + strings.Join(quoted, ", ") + " ]"
}
