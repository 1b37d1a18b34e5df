package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"orrery/internal/engine/lxc"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
)

// wantNoTrace wants that nothing is left of a site on this host: no process, control group, mount,
// link, table or claim, and no file but what is kept on purpose. Whether links are left is told by
// their marks, and those of nodes by their bridges.
func (s *site) wantNoTrace() {
	s.Helper()
	s.eventually(func() error { // control groups of dead processes take a moment to go
		if found := s.traces(); len(found) > 0 {
			return fmt.Errorf("left of site %s:\n  %s", s.name, strings.Join(found, "\n  "))
		}
		return nil
	})
}

func (s *site) traces() []string {
	var found []string
	add := func(what string, all ...string) {
		for _, one := range all {
			found = append(found, what+" "+one)
		}
	}
	add("process", s.processes()...)
	add("control group", glob("/sys/fs/cgroup/orrery/"+s.name, "/sys/fs/cgroup/*/orrery/"+s.name)...)
	for _, group := range glob("/sys/fs/cgroup/orrery", "/sys/fs/cgroup/*/orrery") {
		if sites := glob(group + "/*/cgroup.procs"); len(sites) == 0 {
			add("empty control group", group)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for _, line := range strings.Split(string(mounts), "\n") {
		if strings.Contains(line, s.dirs.Site(s.name)+"/") ||
			strings.Contains(line, filepath.Join(s.dirs.Run, "sites", s.name)+"/") {
			add("mount", line)
		}
	}
	links, _ := exec.Command("ip", "-o", "-d", "link").Output()
	for _, line := range strings.Split(string(links), "\n") {
		if strings.Contains(line, "alias orrery "+s.name+" ") || strings.Contains(line, "alias orrery "+s.name+".") ||
			strings.Contains(line, ": orv") && !strings.Contains(line, " master orb") {
			add("link", line)
		}
	}
	tables, _ := exec.Command("nft", "list", "tables").Output()
	for _, line := range strings.Split(string(tables), "\n") {
		if strings.HasSuffix(line, "orrery-"+s.name) || strings.Contains(line, "orrery-"+s.name+".") {
			add("nftables", line)
		}
	}
	add("file", glob(filepath.Join(s.dirs.Run, "sites", s.name), filepath.Join(s.dirs.Run, "vm", s.name),
		s.dirs.Nodes(s.name)+"/*", s.dirs.Nodes(s.name)+"/.??*")...)
	add("claim", glob(filepath.Join("/run/orrery/claims", s.name))...)
	for _, slot := range glob("/var/lib/orrery/slots/*") {
		if owner, _ := os.Readlink(slot); strings.HasPrefix(owner, s.dirs.State+":"+s.name+"/") {
			add("slot", slot+" of "+owner)
		}
	}
	return found
}

// processes returns the monitors of the site's containers, and QEMU and virtiofsd of its virtual
// machines.
func (s *site) processes() []string {
	var all []string
	for _, path := range glob("/proc/[0-9]*/cmdline") {
		text, _ := os.ReadFile(path)
		if strings.Contains(string(text), s.dirs.Nodes(s.name)+"/") ||
			strings.Contains(string(text), "\x00guest="+s.name+"/") {
			all = append(all, path+": "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return all
}

// init returns the process id of a node's init on the host and its start time, so that a restart
// can be detected.
func (s *site) init(node string) string {
	s.Helper()
	e := lxc.New(s.dirs, image.Open(s.dirs.State))
	nodes, err := e.List(s.Context(), s.name)
	if err != nil {
		s.Fatal(err)
	}
	for _, n := range nodes {
		if n.Name != node {
			continue
		}
		monitor, _ := os.ReadFile(nodedir.Of(s.dirs, s.name, n.ID).File("pid"))
		pid := strings.TrimSpace(string(monitor))
		child, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		if err != nil || strings.TrimSpace(string(child)) == "" {
			s.Fatalf("node %s does not run: %v", node, err)
		}
		first := strings.Fields(string(child))[0]
		stat, err := os.ReadFile("/proc/" + first + "/stat")
		if err != nil {
			s.Fatal(err)
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		return first + " started " + strings.Fields(after)[19]
	}
	s.Fatalf("there is no node %s", node)
	return ""
}

func glob(patterns ...string) []string {
	var all []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		all = append(all, found...)
	}
	return all
}
