package hosts

import (
	"orrery/internal/apply"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Directories returns the volume directories of each node of a site, in the order of its nodes,
// with their mirrors.
func Directories(s *site.Site, mirrors []volume.Mirror) ([][]apply.Directory, error) {
	by := map[[2]string]volume.Mirror{}
	for _, m := range mirrors {
		by[[2]string{m.Volume, m.Node}] = m
	}
	maker, all := spec.NewBuilder(s), make([][]apply.Directory, len(s.Nodes))
	for i := range s.Nodes {
		spelt, err := maker.Node(&s.Nodes[i])
		if err != nil {
			return nil, err
		}
		for _, m := range spelt.Mounts {
			d := apply.Directory{Node: spelt.Name, Mount: m}
			mirror := by[[2]string{m.Volume, d.Name()}]
			d.Mirror, d.Every = mirror.To, mirror.Every
			all[i] = append(all[i], d)
		}
	}
	return all, nil
}
