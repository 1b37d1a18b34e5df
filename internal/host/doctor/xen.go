package doctor

import (
	"context"
	"strings"

	"orrery/internal/host/xl"
)

// xen checks whether nodes can be guests of Xen. Most hosts do not run on Xen and do not need it.
func xen() Fact {
	lack := xl.CheckRequirements()
	if lack != nil {
		return onXen("", lack)
	}
	info, err := xl.ReadInfo(context.Background())
	if err != nil {
		return onXen("", err)
	}
	return onXen(info.Version, nil)
}

func onXen(version string, lack error) Fact {
	const name = "Xen"
	if lack == nil {
		return Fact{name, true, Info, version + ", and this host is its Dom0", ""}
	}
	f := missingFact(name, lack)
	f.Value = strings.Replace(f.Value, "no virtual machines", "no guests of Xen", 1)
	return f
}
