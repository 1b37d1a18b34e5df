package hosts

import (
	"context"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/remote"
	"orrery/internal/control/here"
	"orrery/internal/host/path"
	"orrery/internal/observe"
	"orrery/internal/plan/overlay"
	"orrery/internal/problem"
)

// probeRoutes checks whether packets of networks between hosts arrive whole. The MTU of an interface
// says nothing about the links in between.
func (v *survey) probeRoutes(ctx context.Context) {
	links, ways, err := v.routes(ctx)
	if err != nil {
		v.all[0].addProblem(err)
		return
	}
	by := map[string][]overlay.Path{}
	for _, w := range ways {
		by[w.From] = append(by[w.From], w)
	}
	ctx, end := context.WithTimeout(ctx, time.Minute) // it takes a second or two, and longer if packets are lost
	defer end()
	var each sync.WaitGroup
	for i := range v.all {
		from := &v.all[i]
		if by[from.Host] == nil {
			continue
		}
		each.Go(func() {
			sizes, err := probeFrom(ctx, v.call.Machine, links[from.Host], by[from.Host])
			if err != nil {
				from.addProblem(err)
				return
			}
			for i, w := range by[from.Host] {
				if err := checkPacketSize(w, sizes[i]); err != nil {
					from.addProblem(err)
				}
			}
		})
	}
	each.Wait()
}

// routes returns the ways between hosts that answer, and the connections to these hosts.
func (v *survey) routes(ctx context.Context) (map[string]*remote.Link, []overlay.Path, error) {
	links, f := map[string]*remote.Link{}, &apply.Fleet{}
	for i, h := range v.call.Site.Hosts {
		if !v.all[i].Answers {
			f.Unknown = append(f.Unknown, h.Name)
			continue
		}
		if !h.Local() {
			l, err := v.call.Link(ctx, h)
			if err != nil {
				return nil, nil, err
			}
			links[h.Name] = l
		}
		v.call.add(f, h, links[h.Name])
	}
	if len(f.All) < 2 {
		return nil, nil, nil
	}
	hosts := make([]observe.Host, len(f.All))
	if err := f.ForEach(func(i int, h *apply.HostClient) (err error) {
		if hosts[i], err = h.Observe(ctx); err == nil {
			err = h.FetchPublicKey(ctx, &hosts[i])
		}
		return err
	}); err != nil {
		return nil, nil, err
	}
	for _, name := range f.Unknown {
		hosts = append(hosts, observe.Host{Name: name, Unknown: true})
	}
	joints, err := overlay.JoinLive(v.call.Site, hosts)
	if err != nil {
		return nil, nil, err
	}
	var known []overlay.Path
	for _, w := range joints.Paths() {
		if _, from := f.Host(w.From); from {
			if _, to := f.Host(w.To); to {
				known = append(known, w)
			}
		}
	}
	return links, known, nil
}

// probeFrom makes a host test ways. If l is nil, this machine tests them.
func probeFrom(ctx context.Context, m here.Machine, l *remote.Link, ways []overlay.Path) ([]int, error) {
	var all []path.Route
	for _, w := range ways {
		all = append(all, path.Route{From: w.At, To: w.There, Size: w.Size})
	}
	if l == nil {
		return m.Try(ctx, all), nil
	}
	return l.Try(ctx, all)
}

// checkPacketSize returns an error if packets of the needed size do not arrive.
func checkPacketSize(w overlay.Path, arrives int) error {
	switch {
	case arrives >= w.Size:
		return nil
	case arrives == 0:
		return problem.New(problem.Unable,
			"host %s does not answer a ping from %s at %s: whether nodes of network %s reach one another is unknown",
			w.To, w.At, w.There, w.Network).
			Try("allow ICMP echo between the hosts, and the traffic that networks between hosts need (docs/site-file.md); or set their underlay =, if they reach one another at other addresses")
	case arrives-w.Over < overlay.MinMTU:
		return problem.New(problem.Unable,
			"from %s, packets larger than %d bytes do not arrive at host %s (%s): network %s sends %d", w.At, arrives,
			w.To, w.There, w.Network, w.Size).
			Try("increase the MTU between them")
	}
	return problem.New(problem.Unable,
		"from %s, packets larger than %d bytes do not arrive at host %s (%s): network %s sends %d", w.At, arrives, w.To,
		w.There, w.Network, w.Size).
		Try("set mtu = %d in [network.%s], or increase the MTU between them", arrives-w.Over, w.Network)
}
