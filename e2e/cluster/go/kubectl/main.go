// kubectl, and helm if it is called by that name: both are made of the same client libraries.
package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	helm "helm.sh/helm/v4/pkg/cmd"
	helmkube "helm.sh/helm/v4/pkg/kube"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // The ways to authenticate.
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if filepath.Base(os.Args[0]) == "helm" {
		os.Exit(runHelm())
	}
	runKubectl()
}

// As in k8s.io/kubernetes/cmd/kubectl: the verbosity counts while the commands are made, before flags are parsed.
func runKubectl() {
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

// As in helm.sh/helm/v4/cmd/helm: helm prints its errors itself.
func runHelm() int {
	helmkube.ManagedFieldsManager = "helm"
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		slog.Warn("command failed", slog.Any("error", err))
		return 1
	}
	err = command.Execute()
	if failed, ok := errors.AsType[helm.CommandError](err); ok {
		return failed.ExitCode
	}
	if err != nil {
		return 1
	}
	return 0
}
