package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/site/spec"
)

// settings returns the settings of a node that the site file decides, except for its roles.
func settings(n *spec.Node) []setting {
	all := []setting{
		{"id", strconv.Itoa(n.ID)}, {"engine", n.Engine}, {"autostart", strconv.FormatBool(n.Autostart)},
		{"privileged", strconv.FormatBool(n.Privileged)}, {"syscalls", strings.Join(n.Syscalls, " ")},
	}
	for _, d := range n.Devices {
		all = append(all, setting{"devices." + d.Path, d.String()})
	}
	for _, nic := range n.NICs {
		text := nic.Address.String()
		for _, more := range []setting{{"IPv6", nic.IPv6}, {"may get", nic.Moving}, {"gateway", nic.Gateway},
			{"MTU", strconv.Itoa(nic.MTU)}, {"kind", nic.Kind}, {"interface", nic.Parent}, {"", nic.Traffic.String()}} {
			if more.value != "" {
				text += ", " + strings.TrimSpace(more.key+" "+more.value)
			}
		}
		all = append(all, setting{"net." + nic.Network, text})
	}
	for i := range n.Mounts {
		m := &n.Mounts[i]
		text := m.Path
		if from := m.Address(); from != "" {
			text += " from " + from
		} else if m.Source != "" {
			text += " from " + m.Source
		}
		all = append(all, setting{"volume." + m.Volume, text})
	}
	for _, group := range []struct {
		name string
		of   any
	}{{"", n.Limits}, {"vm", n.VM}, {"xen", n.Xen}, {"disk", n.Disk}} {
		all = append(all, flat(group.name, group.of)...)
	}
	return all
}

// networkSettings returns the settings of a network.
func networkSettings(n *spec.Network) []setting {
	return slices.DeleteFunc(flat("", n), func(s setting) bool {
		return s.key == "site" || s.key == "name" || s.key == "bridge"
	})
}

// sizes are keys of settings in bytes.
var sizes = []string{"memory", "swap", "vm.size", "vm.hugepages"}

// flat returns the values of a struct's JSON form, each with the path of its key.
func flat(prefix string, of any) []setting {
	text, err := json.Marshal(of)
	var tree any
	if err != nil || json.Unmarshal(text, &tree) != nil {
		return nil
	}
	return flatten(prefix, tree)
}

func flatten(key string, tree any) (all []setting) {
	switch v := tree.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			all = append(all, flatten(strings.TrimPrefix(key+"."+k, "."), v[k])...)
		}
		return all
	case []any:
		for i, item := range v {
			all = append(all, flatten(fmt.Sprintf("%s.%d", key, i+1), item)...)
		}
		return all
	case float64:
		return []setting{{key, number(key, v)}}
	}
	return []setting{{key, fmt.Sprint(tree)}}
}

// number returns a number in the form of a site file.
func number(key string, v float64) string {
	const mib = 1 << 20
	if slices.Contains(sizes, key) && v > 0 && int64(v)%mib == 0 {
		return strconv.FormatInt(int64(v)/mib, 10) + "MiB"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
