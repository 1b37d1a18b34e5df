package stand

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A DeclaredNode is a node in quarantine as its release declares it, not as its host reports it.
type DeclaredNode struct {
	Node   *spec.Node
	Layers []*spec.Layer // each after the layers below it
	Of     *site.Node
	Site   *site.Site // as the release declares it
}

// AsDeclared returns a node in quarantine as the site of its release declares it. The mtus are the MTUs
// of the live networks, or nil if they do not matter. The node has copies of its volumes if it was
// never live, and otherwise lacks the volumes that only one node can have. Spell returns in why how
// the declaration differs from the existing node, or "" if it does not.
func AsDeclared(current *spec.Node, of *site.Site, mtus map[string]int) (e *DeclaredNode, why string, err error) {
	if of == nil {
		return nil, "its site directory as staged is unknown", nil
	}
	n, ok := of.Node(current.Name)
	if !ok || n.Release != current.Release {
		return nil, "it is no longer declared", nil
	}
	live := spec.NewBuilder(of)
	live.MTUs = mtus
	wanted, err := live.Node(n)
	if err != nil {
		return nil, "", err
	}
	e = &DeclaredNode{Layers: live.Layers(n), Of: n, Site: of}
	forms := []spec.Node{AsRetired(*wanted)}
	if n.Release != 0 {
		apart := *of
		apart.Stage = n.Release
		staged := spec.NewBuilder(&apart)
		staged.MTUs = mtus
		form, err := staged.Node(n)
		if err != nil {
			return nil, "", err
		}
		forms = append(forms, *form)
	}
	for i := range forms {
		if slices.Equal(forms[i].Mounts, withoutDuplicates(current.Mounts)) {
			e.Node = &forms[i]
		}
	}
	switch {
	case current.ID != wanted.ID:
		return nil, "its id changed", nil
	case current.Engine != wanted.Engine:
		return nil, "its engine changed", nil
	}
	normalized := AsLive(*current)
	for i := range normalized.NICs { // the networks of a quarantine may have another MTU
		if i < len(wanted.NICs) {
			normalized.NICs[i].MTU = wanted.NICs[i].MTU
		}
	}
	if why := UpdateReason(&normalized, wanted); why != "" {
		return nil, why, nil
	}
	if e.Node == nil {
		return nil, "a change of its volumes was interrupted", nil
	}
	return e, "", nil
}
