package role

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// A Job is the configuration of one node.
type Job struct {
	Duties *spec.RoleActions
	In     host.Runner
	Was    spec.Config // as previously applied, or the zero Config for a new node
	Is     spec.Config
	Log    io.Writer
	Say    func(string)

	Host     string
	Injected bool     // the rendered files existed when the node booted
	Starts   []string // services that start at boot according to the node's layer
	Live     bool     // the node is not in quarantine

	BootTimeout time.Duration // maximum time for the node to boot
}

// Configure applies the roles of a running node: rendered files, boot steps, services. It leaves
// alone what has not changed since Was. The exception is a role with any change, and the roles that
// need it: their boot steps run, and their services restart.
func (j *Job) Configure(ctx context.Context) error {
	whole, err := WaitForBoot(ctx, j.In, j.initSystem(), j.BootTimeout, j.Log)
	if err != nil {
		return err
	}
	if err := revokeKeys(ctx, j); err != nil {
		return err
	}
	roles := rolesOf(j.Duties)
	if whole && j.Injected && site.SelfStarting(roles) && started(roles, j.Starts) {
		tasks := newTasks(j.Duties)
		for i := range tasks {
			tasks[i].whole = true
		}
		return j.watch(ctx, tasks) // its services have started at boot
	}
	if err := j.installUnlayered(ctx); err != nil {
		return err
	}
	tasks := j.changes()
	if err := j.runTasks(ctx, tasks); err != nil {
		return err
	}
	if err := j.watch(ctx, tasks); err != nil {
		return err
	}
	return j.dropServices(ctx)
}

// started reports whether all services of roles started when the node booted. A layer that was
// built before a service was declared does not start that service.
func started(roles []*site.Role, starts []string) bool {
	return !slices.ContainsFunc(site.ServicesOf(roles), func(s string) bool { return !slices.Contains(starts, s) })
}

// BootTimeout is the maximum time for a node to boot whose processors are not emulated.
const BootTimeout = 5 * time.Minute

// WaitForBoot waits until the node has booted, which may take until the timeout. It reports whether
// all units have started.
func WaitForBoot(ctx context.Context, in host.Runner, sv *distro.Services, timeout time.Duration,
	log io.Writer) (whole bool, err error) {
	within, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("%s is still busy after %s", sv.Name, timeout))
	defer cancel()
	ask := func(ctx context.Context, out io.Writer, args []string) error {
		return in.Run(ctx, host.Command{Args: args, Stdout: out})
	}
	for {
		var said host.TailBuffer
		err := ask(within, &said, sv.Awaited)
		state := strings.TrimSpace(said.String())
		var run *host.RunError
		switch {
		case err == nil:
			return true, nil
		case state == sv.Partly:
			fmt.Fprintln(log, "these units of the node failed to start:")
			return false, ask(ctx, log, sv.Broken)
		// it does not accept commands yet
		case within.Err() == nil && errors.As(err, &run) && slices.Contains(sv.Deaf, state):
			_ = host.Sleep(within, 50*time.Millisecond)
			continue
		case ctx.Err() == nil && within.Err() != nil:
			fmt.Fprintln(log, "these jobs of the node have not finished:")
			err = errors.Join(context.Cause(within), ask(ctx, log, sv.Pending))
		}
		return false, problem.New(problem.Failed, "the node did not boot").Because(err).
			Try("orrery logs shows the output of its units")
	}
}

// files installs the rendered files of a role on the node.
func (j *Job) files(ctx context.Context, r *spec.RoleAction) error {
	if j.Injected {
		return nil
	}
	return j.putFiles(ctx, r, RenderedFiles(r))
}

func (j *Job) putFiles(ctx context.Context, r *spec.RoleAction, files []host.File) error {
	if len(files) == 0 {
		return nil
	}
	j.Say("role " + r.Name + ": files")
	if err := j.In.Put(ctx, files...); err != nil {
		return fmt.Errorf("role %s: files: %w", r.Name, err)
	}
	return nil
}

// RenderedFiles returns the rendered files of a role. A file that contains a secret is a link, because its
// content is in the host's tmpfs.
func RenderedFiles(r *spec.RoleAction) []host.File {
	var all []host.File
	for i := range r.Rendered {
		f := &r.Rendered[i]
		if f.Secret {
			all = append(all, host.File{Path: f.Path, Link: "/etc/orrery/" + SecretFilePath(f.Path)})
		} else {
			all = append(all, host.File{Path: f.Path, Content: f.Content, Owner: f.Owner, Mode: f.Mode})
		}
	}
	return all
}

// rolesOf returns the roles of a node. Roles that others need come first.
func rolesOf(d *spec.RoleActions) []*site.Role {
	all := make([]*site.Role, len(d.Roles))
	for i := range d.Roles {
		all[i] = d.Roles[i].Role
	}
	return all
}

// SecretFilePath returns the path below /etc/orrery of a rendered file that contains a secret.
func SecretFilePath(path string) string { return "files/" + spec.DigestBytes([]byte(path)) }

func (j *Job) steps(ctx context.Context, r *spec.RoleAction, when string) error {
	if !slices.ContainsFunc(r.Steps, func(s site.Step) bool { return s.When == when }) {
		return nil
	}
	if err := putRoleFiles(ctx, j.In, r.Role, roleFileNames(r.Role), when); err != nil {
		return err
	}
	env := bootEnv(r)
	for i := range r.Steps {
		if s := &r.Steps[i]; s.When == when {
			j.Say("role " + r.Name + ": step " + s.Name)
			if err := runStep(ctx, j.In, r.Role, s, env, j.Log, "node "+j.Duties.Node+" of host "+j.Host); err != nil {
				return err
			}
		}
	}
	return nil
}

// services restarts services of a role with their new files, and enables them at boot.
func (j *Job) services(ctx context.Context, r *spec.RoleAction, services []string) error {
	if len(services) == 0 {
		return nil
	}
	j.Say("role " + r.Name + ": services")
	if err := j.run(ctx, j.initSystem().Renew, services); err != nil {
		var run *host.RunError
		if errors.As(err, &run) {
			run.Command = slices.Concat(j.initSystem().Restart, services)
		}
		return problem.New(problem.Failed, "role %s: a service failed to start", r.Name).
			At("node "+j.Duties.Node).Because(err).Try("see orrery logs %s", j.Duties.Node)
	}
	return nil
}

// dropServices stops services that no role of the node has any more.
func (j *Job) dropServices(ctx context.Context) error {
	var gone []string
	for _, s := range j.Was.Services {
		if !slices.Contains(j.Is.Services, s) {
			gone = append(gone, s)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return j.run(ctx, j.initSystem().End, gone)
}
