package role

import (
	"context"
	"fmt"
	"io"
	"slices"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// An Installer installs packages of a distribution in the container where a layer is built.
type Installer func(ctx context.Context, in host.Runner, d *distro.Distribution, packages []string, log io.Writer) error

// Build fills a role layer: files, then packages, then Python packages, then build steps. Each role
// comes after those that it needs.
func Build(ctx context.Context, in host.Runner, l *spec.Layer, install Installer, log io.Writer,
	say func(string)) error {
	d := distro.ForImage(l.Image)
	if err := in.Put(ctx, ofLayer(l.Roles, plainOwner)...); err != nil {
		return fmt.Errorf("files of %s: %w", l.Title, err)
	}
	var packages, pip []string
	for _, r := range l.Roles {
		packages, pip = append(packages, r.Apt...), append(pip, r.Pip...)
	}
	if len(pip) > 0 {
		packages = append(packages, d.Venv)
	}
	if len(packages) > 0 {
		say(fmt.Sprintf("%d packages and their dependencies", len(packages)))
		slices.Sort(packages)
		if err := install(ctx, in, d, slices.Compact(packages), log); err != nil {
			return err
		}
	}
	// Packages have created the owners of the remaining files.
	if err := in.Put(ctx, ofLayer(l.Roles, func(owner string) bool { return !plainOwner(owner) })...); err != nil {
		return err
	}
	if len(pip) > 0 {
		say(fmt.Sprintf("%d Python packages and their dependencies", len(pip)))
		if err := installPip(ctx, in, pip, l, log); err != nil {
			return err
		}
	}
	for _, r := range l.Roles {
		if err := buildSteps(ctx, in, r, log, say); err != nil {
			return err
		}
	}
	return settleServices(ctx, in, d.Services, slices.Concat(l.Under, l.Roles), log)
}

// plainOwner reports whether a file can be written before packages create users.
func plainOwner(owner string) bool { return owner == "" || owner == "root:root" || owner == "root" }

// ofLayer returns the files of roles that belong in a layer and whose owner matches.
func ofLayer(roles []*site.Role, wanted func(owner string) bool) []host.File {
	var files []host.File
	for _, r := range roles {
		for _, f := range r.Files {
			if !f.Rendered() && wanted(f.Owner) {
				files = append(files, host.File{Path: f.Path, Content: f.Content, Owner: f.Owner, Mode: f.Mode})
			}
		}
	}
	return files
}

func installPip(ctx context.Context, in host.Runner, packages []string, l *spec.Layer, log io.Writer) error {
	const file = "/run/orrery-role/requirements.txt"
	if err := in.Put(ctx, host.File{Path: file, Content: []byte(pipFile(l.Pins)), Mode: 0o644}); err != nil {
		return err
	}
	if err := in.Run(ctx, host.Command{Args: []string{"python3", "-m", "venv", Venv}, Stdout: log,
		Stderr: log}); err != nil {
		return fmt.Errorf("virtual environment: %w", err)
	}
	args := []string{Venv + "/bin/pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"}
	args = append(args, pipArguments(packages, l.Pins, file)...)
	if err := in.Run(ctx, host.Command{Args: args, Stdout: log, Stderr: log}); err != nil {
		return problem.New(problem.Failed, "Python packages of %s could not be installed", l.Title).Because(err).
			Try("pin all of them and their dependencies to existing versions in the requirements file")
	}
	return nil
}

// buildSteps runs the build steps of a role.
func buildSteps(ctx context.Context, in host.Runner, r *site.Role, log io.Writer, say func(string)) error {
	if !slices.ContainsFunc(r.Steps, func(s site.Step) bool { return s.When == site.Build }) {
		return nil
	}
	if err := putRoleFiles(ctx, in, r, spec.BuildFiles(r), site.Build); err != nil {
		return err
	}
	for i := range r.Steps {
		if s := &r.Steps[i]; s.When == site.Build {
			say("role " + r.Name + ": step " + s.Name)
			if err := runStep(ctx, in, r, s, buildEnv(r), log, "the layer"); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleServices enables services at boot if their roles need nothing but their files. Otherwise it
// disables them, whatever their packages do. They then start after the node is configured.
func settleServices(ctx context.Context, in host.Runner, sv *distro.Services, roles []*site.Role, log io.Writer) error {
	services := site.ServicesOf(roles)
	if len(services) == 0 {
		return nil
	}
	order := sv.NotOn
	if site.SelfStarting(roles) {
		order = sv.OnBoot
	}
	return in.Run(ctx, host.Command{Args: slices.Concat(order, services), Stdout: log, Stderr: log})
}
