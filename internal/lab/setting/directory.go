package setting

import (
	"bytes"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"orrery/internal/host"
	"orrery/internal/lab/experiment"
	"orrery/internal/site"
	"orrery/internal/text/shell"
)

//go:embed site.toml.tmpl
var siteText string

//go:embed role.toml.tmpl
var roleText string

// WorkPath is where nodes mount the directory on the measured disk. DiskPath is the work directory
// of virtual machines with their own disk.
const (
	WorkPath = "/srv/lab"
	DiskPath = "/var/lib/orrery-lab"
)

// network is a network of the testbed for site.toml.tmpl.
type network struct {
	Name, Kind, Interface string
	Prefix                string // the first three numbers of its addresses
}

// nic connects a node to a network. Interface is that of the host, if the kind of the network is
// exclusive.
type nic struct {
	Network, Address, Interface string
}

// node is a node of the testbed for site.toml.tmpl.
type node struct {
	Name       string
	ID         int
	Engine     string
	Limits     site.Limits
	VM         site.VM
	Type       string // of a Xen guest
	Disk       disk
	Privileged bool
	NICs       []nic
}

// vethPair is a veth pair whose ends take the place of NICs.
type vethPair struct{ Name, A, B string }

// plan is the content of the site file.
type plan struct {
	Experiment string
	Site       string
	Suite      string
	Components []string
	Packages   []string
	Work       string
	Networks   []network
	VethPairs  []vethPair
	Nodes      []node
}

// lan is the network of the host, of the far end, and of every setting with a plain veth.
const lan = "lan"

// Networks returns how many networks an experiment needs.
func Networks(e *experiment.Experiment) int { return 1 + len(e.Settings) }

// Write writes the site directory.
func (s *Testbed) Write(dir string) error {
	text, err := execute("site.toml", siteText, s.plan())
	if err != nil {
		return err
	}
	role, err := execute("role.toml", roleText, s.Needs)
	if err != nil {
		return err
	}
	files := []host.File{
		{Path: filepath.Join(dir, "site.toml"), Content: text, Mode: 0o644},
		{Path: filepath.Join(dir, "roles/lab/role.toml"), Content: role, Mode: 0o644},
	}
	for _, p := range s.Needs.Programs {
		files = append(files, host.File{Path: filepath.Join(dir, "roles/lab", p.Name+".c"), Content: p.Source, Mode: 0o644})
	}
	for _, f := range files {
		if err := host.WriteFile(f); err != nil {
			return err
		}
	}
	return nil
}

func execute(name, text string, data any) ([]byte, error) {
	t, err := template.New(name).Funcs(template.FuncMap{"compile": compileCommand, "list": quotedList}).Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.Bytes(), err
}

// plan returns the networks and nodes.
func (s *Testbed) plan() *plan {
	p := &plan{
		Experiment: s.Experiment.Name, Site: SiteName, Suite: s.Experiment.Suite, Work: s.Work,
		Components: s.Experiment.Components, Packages: s.Experiment.Packages,
		Networks: []network{{Name: lan, Prefix: s.Subnets[0]}},
	}
	far := node{Name: FarEnd, ID: farID, NICs: []nic{{Network: lan, Address: s.Subnets[0] + ".2"}}}
	id := firstID
	for i, one := range s.settings {
		on := network{Name: lan, Prefix: s.Subnets[0]}
		if !one.Bridged() {
			on = network{Name: nodeName(one.Name), Kind: one.Network, Prefix: s.Subnets[i+1]}
		}
		if one.Network == experiment.Macvlan {
			on.Interface = one.Interface
			if on.Interface == "" {
				c := standIn(i)
				p.VethPairs, on.Interface = append(p.VethPairs, c), c.A
			}
		}
		for copied, name := range s.Nodes(one) {
			to := nic{Network: on.Name, Address: fmt.Sprintf("%s.%d", on.Prefix, 10+id-firstID)}
			if one.Network == experiment.Exclusive {
				to.Interface = one.Interface
				if to.Interface == "" {
					c := standIn(i)
					p.VethPairs = append(p.VethPairs, c)
					to.Interface = c.A
					far.NICs = append(far.NICs, nic{Network: on.Name, Address: on.Prefix + ".2", Interface: c.B})
				}
			}
			p.Nodes = append(p.Nodes, node{Name: name, ID: id, Engine: one.Engine, Limits: one.Limits, VM: hardware(one),
				Type: one.Type, Disk: s.disk(one, copied), Privileged: one.Privileged, NICs: []nic{to}})
			id++
		}
		if on.Name != lan {
			p.Networks = append(p.Networks, on)
		}
		if one.Network == experiment.Routed || one.Network == experiment.Macvlan {
			far.NICs = append(far.NICs, nic{Network: on.Name, Address: on.Prefix + ".2"})
		}
	}
	p.Nodes = append([]node{far}, p.Nodes...)
	return p
}

// hardware returns the virtual hardware of a setting, if it is a QEMU virtual machine.
func hardware(of experiment.Setting) site.VM {
	if of.Engine != site.KVM {
		return site.VM{}
	}
	return site.VM{CPU: of.CPU, Model: of.Network}
}

// disk is the disk of a node for its site file. On is its kind or device, or "" for none. Size is
// in bytes if it is a file.
type disk struct {
	On         string
	Size       int64
	Cache, AIO string
}

// disk returns the disk of a copy.
func (s *Testbed) disk(of experiment.Setting, copied int) disk {
	d := disk{Size: s.diskSize(), Cache: of.Cache, AIO: of.AIO}
	switch of.Disk {
	case "":
		return disk{}
	case experiment.Partition:
		d.On, d.Size = of.Devices[copied], 0
	case experiment.QCow2:
		d.On = of.Disk
	default:
		d.On = experiment.Raw
	}
	return d
}

// diskHeadroomBytes is the space on a disk in addition to the tests' files, in bytes, for other data of the
// node and for the file system.
const diskHeadroomBytes = 2 << 30

// diskSize returns the size of a disk that is large enough for each of the tests once.
func (s *Testbed) diskSize() int64 {
	size := int64(diskHeadroomBytes)
	for _, t := range s.Experiment.Tests {
		size += t.Needs().Disk
	}
	return size
}

// Virtual reports whether the node is a virtual machine.
func (n node) Virtual() bool { return site.BootsKernel(n.Engine) }

// standIn returns the pair that takes the place of a setting's NIC.
func standIn(setting int) vethPair {
	return vethPair{fmt.Sprintf("wire%d", setting), fmt.Sprintf("orlab%da", setting), fmt.Sprintf("orlab%db", setting)}
}

// compileCommand returns the shell command that compiles a program of the role.
func compileCommand(command []string, name string) string {
	var words []string
	for _, word := range command {
		word = strings.ReplaceAll(word, "SOURCE", "./"+name+".c")
		word = strings.ReplaceAll(word, "PROGRAM", "/usr/local/bin/"+name)
		words = append(words, word)
	}
	return shell.Join(words)
}

func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
