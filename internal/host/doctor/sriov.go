package doctor

import (
	"fmt"
	"path/filepath"

	"orrery/internal/host/sriov"
	of "orrery/internal/observe/sriov"
	"orrery/internal/text/humanize"
	"orrery/internal/tree"
)

// virtualFunctions returns a fact for each network card that can have virtual functions. Only
// networks of the kind sriov need one.
func virtualFunctions(m machine) Facts {
	const name = "SR-IOV"
	bus := sriov.Local
	bus.Sys = filepath.Join(m.root, "sys")
	cards, err := bus.Cards()
	switch {
	case err != nil:
		return Facts{{name, false, Info, err.Error(), "run orrery as root"}}
	case len(cards) == 0:
		return Facts{{name, true, Info, "no network card has virtual functions, which networks of the kind sriov need", ""}}
	}
	var all Facts
	for i := range cards {
		all = append(all, cardFact(m, &cards[i]))
	}
	return all
}

func cardFact(m machine, c *of.Card) Fact {
	f := Fact{Name: "SR-IOV " + c.Address, OK: true, Level: Info}
	if len(c.Interfaces) > 0 {
		f.Name = "SR-IOV " + humanize.List(c.Interfaces, 4)
	}
	f.Value = fmt.Sprintf("driver %s, %d of %d virtual functions created, %d in use, link %s, IOMMU %s", orNone(c.Driver),
		c.Current, c.Total, len(c.Used), linkState(m, c), iommu(m))
	switch {
	case c.Total == 0:
		f.OK, f.Fix = false, "turn SR-IOV on in the firmware of the host and of the card; "+
			"boot with pci=realloc if the firmware reserves too little address space"
	case c.Driver == "":
		f.OK, f.Fix = false, "load the card's driver"
	case len(c.Interfaces) == 0:
		f.OK, f.Fix = false, "the card has no interface on the host: another network namespace has it"
	}
	return f
}

func orNone(word string) string {
	if word == "" {
		return "none"
	}
	return word
}

// linkState returns whether the card has a link. A card that is down has none; Orrery sets it up.
func linkState(m machine, c *of.Card) string {
	if !c.Up {
		return "down until a network uses it"
	}
	for _, name := range c.Interfaces {
		if m.read("sys/class/net/"+name+"/carrier") == "1" {
			return "up"
		}
	}
	return "down: check the cable"
}

const maxUnits = 1 << 16

// iommu returns whether there is an IOMMU. Containers do not need it.
func iommu(m machine) string {
	if sys, err := tree.Open(filepath.Join(m.root, "sys")); err == nil {
		defer sys.Close()
		if units, err := sys.Names("class/iommu", maxUnits); err == nil && len(units) > 0 {
			return "on"
		}
	}
	switch {
	case m.processorHas("vmx"):
		return "off (only virtual machines need it: boot with intel_iommu=on iommu=pt)"
	case m.processorHas("svm"):
		return "off (only virtual machines need it: boot with amd_iommu=on iommu=pt)"
	}
	return "off (only virtual machines need it: turn on VT-d or AMD-Vi in the firmware, and boot with intel_iommu=on iommu=pt)"
}
