// Package diff describes how a plan or a release changes nodes and networks: the former and the new
// value of each setting, a unified diff of each file, and the packages that are added and removed.
package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site/spec"
)

// A Change is how something differs, in lines for display.
type Change struct {
	Title string // "node portal", "network lan of host sv1"
	Lines []string
}

// Sources derive what the digests in records stand for, from present and former declarations of a
// site. A text is shown only if it has the recorded digest, so that it is what a node really has.
type Sources []*spec.Builder

// Plan returns how a plan changes existing nodes and networks.
func (all Sources) Plan(p *plan.Plan) []Change {
	var changes []Change
	var order []string
	nodes := map[string]*[2]*spec.Node{} // as they are before the first step, and after the last one
	for _, s := range p.Steps {
		if s.Kind == plan.MakeNetwork && s.OldNetwork != nil {
			changes = append(changes, Change{s.Title() + " of host " + s.Host,
				compare(networkSettings(s.OldNetwork), networkSettings(s.Network))})
		}
		if !s.ForNode() {
			continue
		}
		title := s.Title()
		if nodes[title] == nil {
			nodes[title] = &[2]*spec.Node{s.Old}
			order = append(order, title)
		}
		if s.Node != nil {
			nodes[title][1] = s.Node
		}
	}
	for _, title := range order {
		if n := nodes[title]; n[0] != nil && n[1] != nil {
			changes = append(changes, Change{title, all.Node(n[0], n[1])})
		}
	}
	return slices.DeleteFunc(changes, func(c Change) bool { return len(c.Lines) == 0 })
}

// Node returns how a node differs from its former state.
func (all Sources) Node(old, desired *spec.Node) []string {
	lines := compare(settings(old), settings(desired))
	if old.Base != desired.Base {
		lines = append(lines, all.base(old, desired)...)
	}
	lines = append(lines, members("service", old.Config.Services, desired.Config.Services)...)
	if old.Config.Health != desired.Config.Health {
		lines = append(lines, "health checks changed")
	}
	before, after := parts(old), parts(desired)
	former, current := all.texts(old.Name, before), all.texts(desired.Name, after)
	for _, part := range spec.ChangedParts(before, after) {
		lines = append(lines, partLines(part, before, after, former, current)...)
	}
	return lines
}

// Release returns how a node differs between two releases. They always differ in the node's id, and in
// whether it is live.
func (all Sources) Release(old, desired *spec.Node) []string {
	before, after := stand.AsLive(*old), stand.AsLive(*desired)
	before.ID, before.Release, before.Config.Active = after.ID, after.Release, nil
	after.Config.Active = nil
	return all.Node(&before, &after)
}

// parts returns all parts of a node's layers and configuration.
func parts(n *spec.Node) spec.PartDigests {
	all := spec.PartDigests{}
	for _, some := range []spec.PartDigests{n.Parts, n.Config.Active, n.Config.Parts} {
		maps.Copy(all, some)
	}
	return all
}

// texts returns the texts of those parts of a node that a source derives with the recorded digest.
func (all Sources) texts(node string, recorded spec.PartDigests) map[string]spec.PartText {
	found := map[string]spec.PartText{}
	for _, b := range all {
		n, ok := b.Site.Node(node)
		if !ok {
			continue
		}
		derived, err := b.Node(n)
		if err != nil {
			continue // a template of a former declaration cannot be rendered
		}
		texts, err := b.PartTexts(n)
		if err != nil {
			continue
		}
		for part, digest := range parts(derived) {
			if text, ok := texts[part]; ok && recorded[part] == digest {
				found[part] = text
			}
		}
	}
	return found
}

// base returns how the base images of two states of a node differ.
func (all Sources) base(old, desired *spec.Node) []string {
	before, after := all.baseParts(old), all.baseParts(desired)
	if before == nil || after == nil {
		return []string{"image: " + notRecorded}
	}
	var lines []string
	for _, key := range spec.ChangedParts(before, after) {
		switch key {
		case "packages", "components":
			lines = append(lines, members(strings.TrimSuffix(key, "s"), strings.Fields(before[key]),
				strings.Fields(after[key]))...)
		case "suite", "distribution":
			lines = append(lines, value("image "+key, before[key], after[key]))
		default:
			lines = append(lines, "image: "+key+" changed")
		}
	}
	return lines
}

func (all Sources) baseParts(n *spec.Node) spec.PartDigests {
	for _, b := range all {
		if declared, ok := b.Site.Node(n.Name); ok {
			if base := b.Base(declared); base.Digest == n.Base {
				return base.Parts
			}
		}
	}
	return nil
}

// partLines returns how a part differs. Before and after are the digests, and former and current the
// known texts.
func partLines(part string, before, after spec.PartDigests, former, current map[string]spec.PartText) []string {
	_, existed := before[part]
	_, exists := after[part]
	_, kind, _ := strings.Cut(part, ": ")
	switch {
	case kind == "apt":
		return members("Debian package", strings.Fields(before[part]), strings.Fields(after[part]))
	case kind == "pip":
		return members("Python package", strings.Fields(before[part]), strings.Fields(after[part]))
	case part == "order":
		return []string{value("roles", before[part], after[part])}
	case part == "kernel" || part == "pypi":
		return []string{value(part, before[part], after[part])}
	case part == "fit": // which a node without layers does not have
		if existed && exists {
			return []string{"layers are made by another version of Orrery"}
		}
		return nil
	case strings.HasPrefix(kind, "service "):
		return members("service", keyIf(existed, kind), keyIf(exists, kind))
	}
	old, isOld := former[part]
	desired, isNew := current[part]
	if existed && !isOld || exists && !isNew {
		return []string{part + ": " + notRecorded}
	}
	var lines []string
	if existed && exists && old.Attributes != desired.Attributes {
		lines = append(lines, value(part, old.Attributes, desired.Attributes))
	}
	return append(lines, unified(part, old.Text, desired.Text, existed, exists)...)
}

func keyIf(ok bool, kind string) []string {
	if !ok {
		return nil
	}
	return []string{strings.TrimPrefix(kind, "service ")}
}

// notRecorded is shown if a former text is unknown.
const notRecorded = "changed; its former content is not recorded on this host"

// A setting is a named value of a node or network, for display.
type setting struct{ key, value string }

// compare returns the settings that differ. Those of desired come first, in their order.
func compare(old, desired []setting) (lines []string) {
	before := map[string]string{}
	for _, s := range old {
		before[s.key] = s.value
	}
	for _, s := range desired {
		if before[s.key] != s.value {
			lines = append(lines, value(s.key, before[s.key], s.value))
		}
	}
	for _, s := range old {
		if !slices.ContainsFunc(desired, func(d setting) bool { return d.key == s.key }) {
			lines = append(lines, value(s.key, s.value, ""))
		}
	}
	return lines
}

// value returns a line with a former and a new value.
func value(key, old, desired string) string {
	return fmt.Sprintf("%s: %s -> %s", key, orNone(old), orNone(desired))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// members returns a line for each name that was added or removed.
func members(what string, old, desired []string) (lines []string) {
	for _, name := range desired {
		if !slices.Contains(old, name) {
			lines = append(lines, "+ "+what+" "+name)
		}
	}
	for _, name := range old {
		if !slices.Contains(desired, name) {
			lines = append(lines, "- "+what+" "+name)
		}
	}
	return lines
}
