package check

import (
	"fmt"
	"math"
	"net/netip"

	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

// sshAddress matches user@host:port. The user and the port are optional. A match cannot be mistaken
// for an option of ssh.
var sshAddress = pattern.New(`^([A-Za-z_][A-Za-z0-9_.-]*@)?([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func checkHosts(ix *index, found *findings) {
	first, numbers := map[string]string{}, map[int]string{}
	for i, h := range ix.Hosts {
		key := at("host", h.Name)
		checkLabel(found, key, "host", h.Name)
		if !sshAddress().MatchString(h.Address) {
			found.report(at("host", h.Name, "address"), `"local" or "user@10.8.1.1"`,
				"address %q is not that of a host", h.Address)
		}
		if other, taken := first[h.Address]; taken {
			found.reportConflict(at("host", h.Name, "address"), at("host", other, "address"),
				"declare each machine once",
				`address "%s" is already used by host %s`, h.Address, other)
		} else {
			first[h.Address] = h.Name
		}
		checkNumber(found, h, ix.NumberOf(i), numbers)
		checkUnderlay(found, h, first)
		if !validCPUs(h.Cpus) {
			found.report(at("host", h.Name, "cpus"), "remove it: Orrery reads it from the host",
				"cpus = %v is not a number of processors", h.Cpus)
		}
		if h.Oversubscribe != 0 && (!validCPUs(h.Oversubscribe) || h.Oversubscribe < 1 || h.Oversubscribe > 100) {
			found.report(at("host", h.Name, "oversubscribe"),
				"1 to 100: with 2, nodes get twice its processors; for fewer processors, set cpus",
				"oversubscribe = %v is out of range", h.Oversubscribe)
		}
		if h.Memory != 0 && h.Memory < minMemory {
			found.report(at("host", h.Name, "memory"), "remove it: Orrery reads it from the host",
				"memory = %d bytes is less than a node needs", h.Memory)
		}
	}
}

// checkNumber checks the number of a host, from which the ids of nodes that each host has follow.
func checkNumber(found *findings, h site.Host, number int, first map[int]string) {
	key := at("host", h.Name, "number")
	if h.Number < 0 || h.Number > maxID {
		found.report(key, fmt.Sprintf("1 to %d; left out: its place among the hosts", maxID), "number %d is out of range", h.Number)
	}
	other, taken := first[number]
	if !taken {
		first[number] = h.Name
		return
	}
	if h.Number == 0 {
		key = at("host", other, "number")
	}
	found.report(key, "number all hosts, or none", "hosts %s and %s both have number %d", other, h.Name, number)
}

// checkUnderlay checks the address of a host for traffic between nodes on different hosts.
func checkUnderlay(found *findings, h site.Host, first map[string]string) {
	if h.Underlay == (netip.Addr{}) {
		return
	}
	key := at("host", h.Name, "underlay")
	if !h.Underlay.IsGlobalUnicast() || h.Underlay.Zone() != "" || h.Underlay.Is4In6() {
		found.report(key, `write one that other hosts can reach, such as "10.8.1.1"`,
			"underlay %s is not the address of a host",
			h.Underlay)
	}
	text := "underlay " + h.Underlay.String()
	if other, taken := first[text]; taken {
		found.reportConflict(key, at("host", other, "underlay"), "give each host its own",
			"%s is already used by host %s",
			text, other)
		return
	}
	first[text] = h.Name
}

// validCPUs reports whether cpus is a possible number of processors.
func validCPUs(cpus float64) bool { return cpus >= 0 && !math.IsInf(cpus, 0) }
