package stand

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// An Edition is a node in quarantine, as its release declares it and not as its host says.
type Edition struct {
	Node   *spec.Node
	Layers []*spec.Layer // each after those that it stands on
	Of     *site.Node
	Site   *site.Site // as the release makes it
}

// Spell spells out a node in quarantine as the site declares it that its release makes, with these
// MTUs of the live networks (nil: they do not matter): with copies of volumes if it was never live,
// else without those that are not for two. Why says how it differs from what is there; "": in
// nothing.
func Spell(current *spec.Node, of *site.Site, mtus map[string]int) (e *Edition, why string, err error) {
	if of == nil {
		return nil, "what it was staged from is not known", nil
	}
	n, ok := of.Node(current.Name)
	if !ok || n.Release != current.Release {
		return nil, "it is not declared any more", nil
	}
	live := spec.NewMaker(of)
	live.MTUs = mtus
	wanted, err := live.Node(n)
	if err != nil {
		return nil, "", err
	}
	e = &Edition{Layers: live.Layers(n), Of: n, Site: of}
	forms := []spec.Node{Retired(*wanted)}
	if n.Release != 0 {
		apart := *of
		apart.Stage = n.Release
		staged := spec.NewMaker(&apart)
		staged.MTUs = mtus
		form, err := staged.Node(n)
		if err != nil {
			return nil, "", err
		}
		forms = append(forms, *form)
	}
	for i := range forms {
		if slices.Equal(forms[i].Mounts, once(current.Mounts)) {
			e.Node = &forms[i]
		}
	}
	switch {
	case current.ID != wanted.ID:
		return nil, "its id changed", nil
	case current.Engine != wanted.Engine:
		return nil, "its engine changed", nil
	}
	normalized := Live(*current)
	for i := range normalized.NICs { // the networks of a quarantine may take frames of another size
		if i < len(wanted.NICs) {
			normalized.NICs[i].MTU = wanted.NICs[i].MTU
		}
	}
	if why := Outdated(&normalized, wanted); why != "" {
		return nil, why, nil
	}
	if e.Node == nil {
		return nil, "a change of its volumes was cut short", nil
	}
	return e, "", nil
}
