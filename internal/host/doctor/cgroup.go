package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// controllers are those that limit and freeze nodes.
var controllers = []string{"cpu", "cpuset", "memory", "pids", "freezer"}

// A hierarchy contains where controllers are found: version 1 has a tree for each, version 2 one
// for all.
type hierarchy struct {
	v1 map[string]string // controller -> directory
	v2 map[string]bool
	at string // directory of version 2, or "" if it is not mounted
}

// cgroups returns the facts about limits for nodes (cgroups(7)).
func (m machine) cgroups() Facts {
	h := readHierarchy(m)
	return Facts{h.version(), h.controllers(), h.swapAccounting(m), h.groupsBelow(), h.diskLimits(), h.deviceAccess()}
}

func readHierarchy(m machine) hierarchy {
	h := hierarchy{v1: map[string]string{}, v2: map[string]bool{}}
	for line := range strings.Lines(m.read("proc/self/mountinfo")) {
		mount, super, ok := strings.Cut(line, " - ")
		where, what := strings.Fields(mount), strings.Fields(super)
		if !ok || len(where) < 5 || len(what) < 3 {
			continue
		}
		switch what[0] {
		case "cgroup":
			for option := range strings.SplitSeq(what[2], ",") {
				h.v1[option] = where[4]
			}
		case "cgroup2":
			h.at = where[4]
			for _, name := range strings.Fields(m.read(filepath.Join(h.at, "cgroup.controllers"))) {
				h.v2[name] = true
			}
			h.v2["freezer"] = true // not a controller there: every group can be frozen
		}
	}
	return h
}

func (h hierarchy) version() Fact {
	const name = "cgroup"
	_, one := h.v1["cpu"]
	if _, ok := h.v1["memory"]; ok {
		one = true
	}
	switch {
	case one && h.at != "":
		return Fact{name, true, Required, "hybrid (version 1, and version 2 in " + h.at + ")", ""}
	case one:
		return Fact{name, true, Required, "version 1", ""}
	case h.at != "":
		return Fact{name, true, Required, "version 2 in " + h.at, ""}
	}
	return Fact{name, false, Required, "not mounted", "mount -t cgroup2 none /sys/fs/cgroup"}
}

func (h hierarchy) controllers() Fact {
	var present, lacks []string
	for _, name := range controllers {
		switch at, one := h.v1[name]; {
		case one:
			present = append(present, fmt.Sprintf("%s (%s)", name, at))
		case h.v2[name] && name != "freezer":
			present = append(present, fmt.Sprintf("%s (%s)", name, h.at))
		case h.v2[name]:
			present = append(present, name)
		default:
			lacks = append(lacks, name)
		}
	}
	f := Fact{"cgroup controllers", len(lacks) == 0, Recommended, strings.Join(present, ", "), ""}
	if !f.OK {
		f.Value = strings.TrimPrefix(f.Value+"; missing: "+strings.Join(lacks, ", "), "; ")
		f.Fix = "limits of these controllers do not work"
		if slices.Contains(lacks, "memory") {
			f.Fix += "; boot with cgroup_enable=memory"
		}
	}
	return f
}

// diskLimits checks whether what nodes read from disks and write to them can be limited.
func (h hierarchy) diskLimits() Fact {
	const name = "disk limits"
	if at, ok := h.v1["blkio"]; ok {
		return Fact{name, true, Info, "blkio (" + at + "), without what the kernel writes later from its cache", ""}
	}
	if h.v2["io"] {
		return Fact{name, true, Info, "io (" + h.at + ")", ""}
	}
	return Fact{name, false, Info, "no controller io or blkio", "`disk` of a node does not work; use a kernel with CONFIG_BLK_DEV_THROTTLING"}
}

// deviceAccess checks whether the kernel limits which devices nodes can open.
func (h hierarchy) deviceAccess() Fact {
	const name = "device access"
	if at, ok := h.v1["devices"]; ok {
		return Fact{name, true, Info, "devices (" + at + ")", ""}
	}
	if h.at != "" {
		return Fact{name, true, Info, "BPF on control groups (" + h.at + ")", ""}
	}
	return Fact{name, false, Info, "no controller devices",
		"`devices` of a node does not work; mount cgroup2, and use a kernel with CONFIG_CGROUP_BPF"}
}

// groupsBelow checks whether the kernel limits how many control groups a node creates.
func (h hierarchy) groupsBelow() Fact {
	const name = "control groups of nodes"
	if len(h.v1) > 0 || h.at == "" {
		return Fact{name, false, Info, "not limited (80 KB of the host's memory each): needs version 2",
			"boot with systemd.unified_cgroup_hierarchy=1, or run untrusted software in virtual machines"}
	}
	return Fact{name, true, Info, "limited", ""}
}

// swapAccounting looks for the file that limits swap. Version 2 has it in every group except the
// root.
func (h hierarchy) swapAccounting(m machine) Fact {
	const name = "swap limits"
	found := false
	if at, ok := h.v1["memory"]; ok {
		found = m.has(filepath.Join(at, "memory.memsw.limit_in_bytes"))
	} else if h.v2["memory"] {
		groups, _ := os.ReadDir(filepath.Join(m.root, h.at))
		found = slices.ContainsFunc(groups, func(g os.DirEntry) bool {
			return m.has(filepath.Join(h.at, g.Name(), "memory.swap.max"))
		})
	}
	if found {
		return Fact{name, true, Info, "supported", ""}
	}
	return Fact{name, false, Info, "the kernel does not account for swap",
		"`swap` of a node has no effect; boot with swapaccount=1 if there is swap"}
}
