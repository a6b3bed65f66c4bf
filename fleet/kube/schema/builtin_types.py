"""The types of the built-in kinds, from the Kubernetes API reference: one line for each type, with indented continuations.

``s`` is a string, ``i`` an integer, ``n`` a number, ``b`` a boolean, ``t`` a timestamp, ``q`` a quantity, ``p`` a port by
number or name, ``*`` an object that is not described here; any other word is another type. ``[x]`` is an atomic list,
``[x:a,b]`` a list whose entries are identified by a and b, ``[x:]`` a set, ``{x}`` a map. ``!`` means required, ``:x`` after a
letter is the default, and ``~`` before the fields marks an atomic type. `fleet.kube.schema.builtin` parses this.
"""

TYPES = """\
Namespace: metadata=ObjectMeta spec=NamespaceSpec status=NamespaceStatus
NamespaceSpec: finalizers=[s]
NamespaceStatus: conditions=[NamespaceCondition:type] phase=s
NamespaceCondition: lastTransitionTime=t message=s reason=s status=s! type=s!
Node: metadata=ObjectMeta spec=NodeSpec status=NodeStatus
NodeSpec: configSource=NodeConfigSource externalID=s podCIDR=s podCIDRs=[s:]
  podPreemptionPolicy=NodePodPreemptionPolicy providerID=s taints=[Taint] unschedulable=b
NodeConfigSource: configMap=ConfigMapNodeConfigSource
ConfigMapNodeConfigSource: kubeletConfigKey=s! name=s! namespace=s! resourceVersion=s uid=s
NodePodPreemptionPolicy: disableResizePreemption=[s]
Taint: effect=s! key=s! timeAdded=t value=s
NodeStatus: addresses=[NodeAddress:type] allocatable={q} capacity={q} conditions=[NodeCondition:type]
  config=NodeConfigStatus daemonEndpoints=NodeDaemonEndpoints declaredFeatures=[s] features=NodeFeatures
  images=[ContainerImage] nodeInfo=NodeSystemInfo phase=s runtimeHandlers=[NodeRuntimeHandler]
  volumesAttached=[AttachedVolume] volumesInUse=[s]
NodeAddress: address=s! type=s!
NodeCondition: lastHeartbeatTime=t lastTransitionTime=t message=s reason=s status=s! type=s!
NodeConfigStatus: active=NodeConfigSource assigned=NodeConfigSource error=s lastKnownGood=NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint=DaemonEndpoint
DaemonEndpoint: Port=i!
NodeFeatures: supplementalGroupsPolicy=b
ContainerImage: names=[s]! sizeBytes=i
NodeSystemInfo: architecture=s! bootID=s! containerRuntimeVersion=s! kernelVersion=s! kubeProxyVersion=s!
  kubeletVersion=s! machineID=s! operatingSystem=s! osImage=s! runningInUserNamespace=b swap=NodeSwapStatus
  systemUUID=s!
NodeSwapStatus: capacity=i
NodeRuntimeHandler: features=NodeRuntimeHandlerFeatures name=s
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=b userNamespaces=b
AttachedVolume: devicePath=s! name=s!
Pod: metadata=ObjectMeta spec=PodSpec status=PodStatus
PodSpec: activeDeadlineSeconds=i affinity=Affinity automountServiceAccountToken=b containers=[Container:name]!
  dnsConfig=PodDNSConfig dnsPolicy=s enableServiceLinks=b ephemeralContainers=[EphemeralContainer:name]
  evictionResponders=[EvictionResponder] hostAliases=[HostAlias:ip] hostIPC=b hostNetwork=b hostPID=b hostUsers=b
  hostname=s hostnameOverride=s imagePullSecrets=[LocalObjectReference:name] initContainers=[Container:name]
  nodeName=s nodeSelector={s} os=PodOS overhead={q} preemptionPolicy=s priority=i priorityClassName=s
  readinessGates=[PodReadinessGate] resourceClaims=[PodResourceClaim:name] resources=ResourceRequirements
  restartPolicy=s runtimeClassName=s schedulerName=s schedulingGates=[PodSchedulingGate]
  schedulingGroup=PodSchedulingGroup securityContext=PodSecurityContext serviceAccount=s serviceAccountName=s
  setHostnameAsFQDN=b shareProcessNamespace=b subdomain=s terminationGracePeriodSeconds=i tolerations=[Toleration]
  topologySpreadConstraints=[TopologySpreadConstraint:topologyKey,whenUnsatisfiable] volumes=[Volume:name]
Affinity: nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
  requiredDuringSchedulingIgnoredDuringExecution=NodeSelector
PreferredSchedulingTerm: preference=NodeSelectorTerm! weight=i!
NodeSelectorTerm: matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
NodeSelectorRequirement: key=s! operator=s! values=[s]
NodeSelector: nodeSelectorTerms=[NodeSelectorTerm]!
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
WeightedPodAffinityTerm: podAffinityTerm=PodAffinityTerm! weight=i!
PodAffinityTerm: labelSelector=LabelSelector matchLabelKeys=[s] mismatchLabelKeys=[s] namespaceSelector=LabelSelector
  namespaces=[s] topologyKey=s!
LabelSelector: ~ matchExpressions=[LabelSelectorRequirement] matchLabels={s}
LabelSelectorRequirement: key=s! operator=s! values=[s]
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
Container: args=[s] command=[s] env=[EnvVar:name] envFrom=[EnvFromSource] image=s imagePullPolicy=s
  lifecycle=Lifecycle livenessProbe=Probe name=s! ports=[ContainerPort:containerPort,protocol] readinessProbe=Probe
  resizePolicy=[ContainerResizePolicy] resources=ResourceRequirements restartPolicy=s
  restartPolicyRules=[ContainerRestartRule] securityContext=SecurityContext startupProbe=Probe stdin=b stdinOnce=b
  terminationMessagePath=s terminationMessagePolicy=s tty=b volumeDevices=[VolumeDevice:devicePath]
  volumeMounts=[VolumeMount:mountPath] workingDir=s
EnvVar: name=s! value=s valueFrom=EnvVarSource
EnvVarSource: configMapKeyRef=ConfigMapKeySelector fieldRef=ObjectFieldSelector fileKeyRef=FileKeySelector
  resourceFieldRef=ResourceFieldSelector secretKeyRef=SecretKeySelector
ConfigMapKeySelector: key=s! name=s optional=b
ObjectFieldSelector: apiVersion=s fieldPath=s!
FileKeySelector: key=s optional=b path=s volumeName=s
ResourceFieldSelector: containerName=s divisor=q resource=s!
SecretKeySelector: key=s! name=s optional=b
EnvFromSource: configMapRef=ConfigMapEnvSource prefix=s secretRef=SecretEnvSource
ConfigMapEnvSource: name=s optional=b
SecretEnvSource: name=s optional=b
Lifecycle: postStart=LifecycleHandler preStop=LifecycleHandler stopSignal=s
LifecycleHandler: exec=ExecAction httpGet=HTTPGetAction sleep=SleepAction tcpSocket=TCPSocketAction
ExecAction: command=[s]
HTTPGetAction: host=s httpHeaders=[HTTPHeader] path=s port=p! protocol=s scheme=s
HTTPHeader: name=s! value=s!
SleepAction: seconds=i
TCPSocketAction: host=s port=p!
Probe: exec=ExecAction failureThreshold=i grpc=GRPCAction httpGet=HTTPGetAction initialDelaySeconds=i periodSeconds=i
  successThreshold=i tcpSocket=TCPSocketAction terminationGracePeriodSeconds=i timeoutSeconds=i
GRPCAction: mode=s port=i service=s
ContainerPort: containerPort=i! hostIP=s hostPort=i name=s protocol=s:TCP
ContainerResizePolicy: resourceName=s restartPolicy=s
ResourceRequirements: claims=[ContainerResourceClaim:name] limits={q} requests={q}
ContainerResourceClaim: name=s request=s
ContainerRestartRule: action=s exitCodes=ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator=s values=[i]
SecurityContext: allowPrivilegeEscalation=b appArmorProfile=AppArmorProfile capabilities=Capabilities privileged=b
  procMount=s readOnlyRootFilesystem=b runAsGroup=i runAsNonRoot=b runAsUser=i seLinuxOptions=SELinuxOptions
  seccompProfile=SeccompProfile windowsOptions=WindowsSecurityContextOptions
AppArmorProfile: localhostProfile=s type=s
Capabilities: add=[s] drop=[s]
SELinuxOptions: level=s role=s type=s user=s
SeccompProfile: localhostProfile=s type=s!
WindowsSecurityContextOptions: gmsaCredentialSpec=s gmsaCredentialSpecName=s hostProcess=b runAsUserName=s
VolumeDevice: devicePath=s! name=s!
VolumeMount: bindMountOptions=[s] mountPath=s! mountPropagation=s name=s! readOnly=b recursiveReadOnly=s subPath=s
  subPathExpr=s
PodDNSConfig: nameservers=[s] options=[PodDNSConfigOption] searches=[s]
PodDNSConfigOption: name=s value=s
EphemeralContainer: args=[s] command=[s] env=[EnvVar:name] envFrom=[EnvFromSource] image=s imagePullPolicy=s
  lifecycle=Lifecycle livenessProbe=Probe name=s! ports=[ContainerPort:containerPort,protocol] readinessProbe=Probe
  resizePolicy=[ContainerResizePolicy] resources=ResourceRequirements restartPolicy=s
  restartPolicyRules=[ContainerRestartRule] securityContext=SecurityContext startupProbe=Probe stdin=b stdinOnce=b
  targetContainerName=s terminationMessagePath=s terminationMessagePolicy=s tty=b
  volumeDevices=[VolumeDevice:devicePath] volumeMounts=[VolumeMount:mountPath] workingDir=s
EvictionResponder: name=s priority=i
HostAlias: hostnames=[s] ip=s
LocalObjectReference: name=s
PodOS: name=s
PodReadinessGate: conditionType=s!
PodResourceClaim: name=s resourceClaimName=s resourceClaimTemplateName=s
PodSchedulingGate: name=s
PodSchedulingGroup: podGroupName=s
PodSecurityContext: appArmorProfile=AppArmorProfile fsGroup=i fsGroupChangePolicy=s runAsGroup=i runAsNonRoot=b
  runAsUser=i seLinuxChangePolicy=s seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile supplementalGroups=[i]
  supplementalGroupsPolicy=s sysctls=[Sysctl] windowsOptions=WindowsSecurityContextOptions
Sysctl: name=s! value=s!
Toleration: effect=s key=s operator=s tolerationSeconds=i value=s
TopologySpreadConstraint: labelSelector=LabelSelector matchLabelKeys=[s] maxSkew=i! minDomains=i nodeAffinityPolicy=s
  nodeTaintsPolicy=s topologyKey=s! whenUnsatisfiable=s!
Volume: awsElasticBlockStore=AWSElasticBlockStoreVolumeSource azureDisk=AzureDiskVolumeSource
  azureFile=AzureFileVolumeSource cephfs=CephFSVolumeSource cinder=CinderVolumeSource configMap=ConfigMapVolumeSource
  csi=CSIVolumeSource downwardAPI=DownwardAPIVolumeSource emptyDir=EmptyDirVolumeSource
  ephemeral=EphemeralVolumeSource fc=FCVolumeSource flexVolume=FlexVolumeSource flocker=FlockerVolumeSource
  gcePersistentDisk=GCEPersistentDiskVolumeSource gitRepo=GitRepoVolumeSource glusterfs=GlusterfsVolumeSource
  hostPath=HostPathVolumeSource image=ImageVolumeSource iscsi=ISCSIVolumeSource name=s! nfs=NFSVolumeSource
  persistentVolumeClaim=PersistentVolumeClaimVolumeSource photonPersistentDisk=PhotonPersistentDiskVolumeSource
  portworxVolume=PortworxVolumeSource projected=ProjectedVolumeSource quobyte=QuobyteVolumeSource rbd=RBDVolumeSource
  scaleIO=ScaleIOVolumeSource secret=SecretVolumeSource storageos=StorageOSVolumeSource
  vsphereVolume=VsphereVirtualDiskVolumeSource
AWSElasticBlockStoreVolumeSource: fsType=s partition=i readOnly=b volumeID=s!
AzureDiskVolumeSource: cachingMode=s diskName=s! diskURI=s! fsType=s kind=s readOnly=b
AzureFileVolumeSource: readOnly=b secretName=s! shareName=s!
CephFSVolumeSource: monitors=[s]! path=s readOnly=b secretFile=s secretRef=LocalObjectReference user=s
CinderVolumeSource: fsType=s readOnly=b secretRef=LocalObjectReference volumeID=s!
ConfigMapVolumeSource: defaultMode=i defaultUser=i items=[KeyToPath] name=s optional=b
KeyToPath: key=s! mode=i path=s! user=i
CSIVolumeSource: driver=s! fsType=s nodePublishSecretRef=LocalObjectReference readOnly=b volumeAttributes={s}
DownwardAPIVolumeSource: defaultMode=i defaultUser=i items=[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef=ObjectFieldSelector mode=i path=s! resourceFieldRef=ResourceFieldSelector user=i
EmptyDirVolumeSource: medium=s mode=i sizeLimit=q
EphemeralVolumeSource: volumeClaimTemplate=PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate: metadata=ObjectMeta spec=PersistentVolumeClaimSpec!
PersistentVolumeClaimSpec: accessModes=[s] dataSource=TypedLocalObjectReference dataSourceRef=TypedObjectReference
  resources=VolumeResourceRequirements selector=LabelSelector storageClassName=s volumeAttributesClassName=s
  volumeMode=s volumeName=s
TypedLocalObjectReference: apiGroup=s kind=s! name=s!
TypedObjectReference: apiGroup=s kind=s name=s namespace=s
VolumeResourceRequirements: limits={q} requests={q}
FCVolumeSource: fsType=s lun=i readOnly=b targetWWNs=[s] wwids=[s]
FlexVolumeSource: driver=s! fsType=s options={s} readOnly=b secretRef=LocalObjectReference
FlockerVolumeSource: datasetName=s datasetUUID=s
GCEPersistentDiskVolumeSource: fsType=s partition=i pdName=s! readOnly=b
GitRepoVolumeSource: directory=s repository=s! revision=s
GlusterfsVolumeSource: endpoints=s! path=s! readOnly=b
HostPathVolumeSource: path=s! type=s
ImageVolumeSource: pullPolicy=s reference=s
ISCSIVolumeSource: chapAuthDiscovery=b chapAuthSession=b fsType=s initiatorName=s iqn=s! iscsiInterface=s lun=i!
  portals=[s] readOnly=b secretRef=LocalObjectReference targetPortal=s!
NFSVolumeSource: path=s! readOnly=b server=s!
PersistentVolumeClaimVolumeSource: claimName=s! readOnly=b
PhotonPersistentDiskVolumeSource: fsType=s pdID=s!
PortworxVolumeSource: fsType=s readOnly=b volumeID=s!
ProjectedVolumeSource: defaultMode=i defaultUser=i sources=[VolumeProjection]
VolumeProjection: clusterTrustBundle=ClusterTrustBundleProjection configMap=ConfigMapProjection
  downwardAPI=DownwardAPIProjection podCertificate=PodCertificateProjection secret=SecretProjection
  serviceAccountToken=ServiceAccountTokenProjection
ClusterTrustBundleProjection: labelSelector=LabelSelector name=s optional=b path=s signerName=s user=i
ConfigMapProjection: items=[KeyToPath] name=s optional=b
DownwardAPIProjection: items=[DownwardAPIVolumeFile]
PodCertificateProjection: certificateChainPath=s credentialBundlePath=s keyPath=s keyType=s maxExpirationSeconds=i
  signerName=s user=i userAnnotations={s}
SecretProjection: items=[KeyToPath] name=s optional=b
ServiceAccountTokenProjection: audience=s expirationSeconds=i path=s! user=i
QuobyteVolumeSource: group=s readOnly=b registry=s! tenant=s user=s volume=s!
RBDVolumeSource: fsType=s image=s! keyring=s monitors=[s]! pool=s readOnly=b secretRef=LocalObjectReference user=s
ScaleIOVolumeSource: fsType=s gateway=s! protectionDomain=s readOnly=b secretRef=LocalObjectReference! sslEnabled=b
  storageMode=s storagePool=s system=s! volumeName=s
SecretVolumeSource: defaultMode=i defaultUser=i items=[KeyToPath] optional=b secretName=s
StorageOSVolumeSource: fsType=s readOnly=b secretRef=LocalObjectReference volumeName=s volumeNamespace=s
VsphereVirtualDiskVolumeSource: fsType=s storagePolicyID=s storagePolicyName=s volumePath=s!
PodStatus: allocatedResources={q} conditions=[PodCondition:type] containerStatuses=[ContainerStatus]
  ephemeralContainerStatuses=[ContainerStatus] extendedResourceClaimStatus=PodExtendedResourceClaimStatus hostIP=s
  hostIPs=[HostIP] initContainerStatuses=[ContainerStatus] message=s
  nodeAllocatableResourceClaimStatuses=[NodeAllocatableResourceClaimStatus] nominatedNodeName=s observedGeneration=i
  phase=s podIP=s podIPs=[PodIP:ip] qosClass=s reason=s resize=s resourceClaimStatuses=[PodResourceClaimStatus:name]
  resources=ResourceRequirements startTime=t volumeHealth=[PodVolumeHealth]
PodCondition: lastProbeTime=t lastTransitionTime=t message=s observedGeneration=i reason=s status=s! type=s!
ContainerStatus: allocatedResources={q} allocatedResourcesStatus=[ResourceStatus] containerID=s image=s! imageID=s!
  lastState=ContainerState name=s! ready=b! resources=ResourceRequirements restartCount=i! started=b
  state=ContainerState stopSignal=s user=ContainerUser volumeMounts=[VolumeMountStatus]
ResourceStatus: name=s resources=[ResourceHealth]
ResourceHealth: health=s message=s resourceID=s
ContainerState: running=ContainerStateRunning terminated=ContainerStateTerminated waiting=ContainerStateWaiting
ContainerStateRunning: startedAt=t
ContainerStateTerminated: containerID=s exitCode=i! finishedAt=t message=s reason=s signal=i startedAt=t
ContainerStateWaiting: message=s reason=s
ContainerUser: linux=LinuxContainerUser
LinuxContainerUser: gid=i supplementalGroups=[i] uid=i
VolumeMountStatus: mountPath=s name=s readOnly=b recursiveReadOnly=s volumeStatus=VolumeStatus
VolumeStatus: image=ImageVolumeStatus
ImageVolumeStatus: imageRef=s
PodExtendedResourceClaimStatus: requestMappings=[ContainerExtendedResourceRequest] resourceClaimName=s
ContainerExtendedResourceRequest: containerName=s requestName=s resourceName=s
HostIP: ip=s
NodeAllocatableResourceClaimStatus: containers=[s] mapping=[NodeAllocatableMappedResources]
  overhead=[NodeAllocatableOverheadResources] resourceClaimName=s
NodeAllocatableMappedResources: name=s quantity=s
NodeAllocatableOverheadResources: name=s perContainer=s perPod=s
PodIP: ip=s
PodResourceClaimStatus: name=s resourceClaimName=s
PodVolumeHealth: healthConditions=[VolumeHealthCondition] lastTransitionTime=t name=s
VolumeHealthCondition: message=s reason=s status=s
Service: metadata=ObjectMeta spec=ServiceSpec status=ServiceStatus
ServiceSpec: allocateLoadBalancerNodePorts=b clusterIP=s clusterIPs=[s] externalIPs=[s] externalName=s
  externalTrafficPolicy=s healthCheckNodePort=i internalTrafficPolicy=s ipFamilies=[s] ipFamilyPolicy=s
  loadBalancerClass=s loadBalancerIP=s loadBalancerSourceRanges=[s] ports=[ServicePort:port,protocol]
  publishNotReadyAddresses=b selector={s} sessionAffinity=s sessionAffinityConfig=SessionAffinityConfig
  trafficDistribution=s type=s
ServicePort: appProtocol=s name=s nodePort=i port=i! protocol=s:TCP targetPort=p
SessionAffinityConfig: clientIP=ClientIPConfig
ClientIPConfig: timeoutSeconds=i
ServiceStatus: conditions=[Condition:type] loadBalancer=LoadBalancerStatus
Condition: lastTransitionTime=t! message=s! observedGeneration=i reason=s! status=s! type=s!
LoadBalancerStatus: ingress=[LoadBalancerIngress]
LoadBalancerIngress: hostname=s ip=s ipMode=s ports=[PortStatus]
PortStatus: error=s port=i! protocol=s!
Event: action=s count=i eventTime=t firstTimestamp=t involvedObject=ObjectReference! lastTimestamp=t message=s
  metadata=ObjectMeta! reason=s related=ObjectReference reportingComponent=s reportingInstance=s series=EventSeries
  source=EventSource type=s
ObjectReference: apiVersion=s fieldPath=s kind=s name=s namespace=s resourceVersion=s uid=s
EventSeries: count=i lastObservedTime=t
EventSource: component=s host=s
ConfigMap: binaryData={s} data={s} immutable=b metadata=ObjectMeta
Secret: data={s} immutable=b metadata=ObjectMeta stringData={s} type=s
ServiceAccount: automountServiceAccountToken=b imagePullSecrets=[LocalObjectReference] metadata=ObjectMeta
  secrets=[ObjectReference:name]
PersistentVolumeClaim: metadata=ObjectMeta spec=PersistentVolumeClaimSpec status=PersistentVolumeClaimStatus
PersistentVolumeClaimStatus: accessModes=[s] allocatedResourceStatuses={s} allocatedResources={q} capacity={q}
  conditions=[PersistentVolumeClaimCondition:type] currentVolumeAttributesClassName=s healthStatus=VolumeHealthStatus
  modifyVolumeStatus=ModifyVolumeStatus phase=s
PersistentVolumeClaimCondition: lastProbeTime=t lastTransitionTime=t message=s reason=s status=s! type=s!
VolumeHealthStatus: healthConditions=[VolumeHealthCondition] lastTransitionTime=t
ModifyVolumeStatus: status=s targetVolumeAttributesClassName=s
Endpoints: metadata=ObjectMeta subsets=[EndpointSubset]
EndpointSubset: addresses=[EndpointAddress] notReadyAddresses=[EndpointAddress] ports=[EndpointPort]
EndpointAddress: hostname=s ip=s! nodeName=s targetRef=ObjectReference
EndpointPort: appProtocol=s name=s port=i! protocol=s
Job: metadata=ObjectMeta spec=JobSpec status=JobStatus
JobSpec: activeDeadlineSeconds=i backoffLimit=i backoffLimitPerIndex=i completionMode=s completions=i managedBy=s
  manualSelector=b maxFailedIndexes=i parallelism=i podFailurePolicy=PodFailurePolicy podReplacementPolicy=s
  scheduling=JobSchedulingConfiguration selector=LabelSelector successPolicy=SuccessPolicy suspend=b
  template=PodTemplateSpec! ttlSecondsAfterFinished=i
PodFailurePolicy: rules=[PodFailurePolicyRule]
PodFailurePolicyRule: action=s onExitCodes=PodFailurePolicyOnExitCodesRequirement
  onPodConditions=[PodFailurePolicyOnPodConditionsPattern]
PodFailurePolicyOnExitCodesRequirement: containerName=s operator=s values=[i]
PodFailurePolicyOnPodConditionsPattern: status=s type=s
JobSchedulingConfiguration: disruptionMode=WorkloadPodGroupDisruptionMode
  resourceClaims=[WorkloadPodGroupResourceClaim:name] schedulingConstraints=WorkloadPodGroupSchedulingConstraints
  schedulingPolicy=WorkloadPodGroupSchedulingPolicy
WorkloadPodGroupDisruptionMode: all=* single=*
WorkloadPodGroupResourceClaim: name=s resourceClaimName=s resourceClaimTemplateName=s
WorkloadPodGroupSchedulingConstraints: topology=[TopologyConstraint]
TopologyConstraint: key=s
WorkloadPodGroupSchedulingPolicy: basic=* gang=WorkloadPodGroupGangSchedulingPolicy
WorkloadPodGroupGangSchedulingPolicy: minCount=i
SuccessPolicy: rules=[SuccessPolicyRule]
SuccessPolicyRule: succeededCount=i succeededIndexes=s
PodTemplateSpec: metadata=ObjectMeta spec=PodSpec
JobStatus: active=i completedIndexes=s completionTime=t conditions=[JobCondition:type] failed=i failedIndexes=s
  ready=i startTime=t succeeded=i terminating=i uncountedTerminatedPods=UncountedTerminatedPods
JobCondition: lastProbeTime=t lastTransitionTime=t message=s reason=s status=s! type=s!
UncountedTerminatedPods: failed=[s] succeeded=[s]
Lease: metadata=ObjectMeta spec=LeaseSpec
LeaseSpec: acquireTime=t holderIdentity=s leaseDurationSeconds=i leaseTransitions=i preferredHolder=s renewTime=t
  strategy=s
PriorityClass: description=s globalDefault=b metadata=ObjectMeta preemptionPolicy=s value=i!
DeviceClass: metadata=ObjectMeta spec=DeviceClassSpec!
DeviceClassSpec: config=[DeviceClaimConfiguration] extendedResourceName=s selectors=[DeviceSelector]
ResourceSlice: metadata=ObjectMeta spec=ResourceSliceSpec!
ResourceSliceSpec: allNodes=b devices=[*] driver=s! nodeName=s nodeSelector=NodeSelector perDeviceNodeSelection=b
  pool=ResourcePool! sharedCounters=[*]
ResourcePool: generation=i! name=s! resourceSliceCount=i!
ResourceClaimTemplate: metadata=ObjectMeta spec=ResourceClaimTemplateSpec!
ResourceClaimTemplateSpec: metadata=ObjectMeta spec=ResourceClaimSpec!
ResourceClaim: metadata=ObjectMeta spec=ResourceClaimSpec! status=ResourceClaimStatus
ResourceClaimSpec: devices=DeviceClaim
DeviceClaim: config=[DeviceClaimConfiguration] constraints=[DeviceConstraint] requests=[DeviceRequest]
DeviceClaimConfiguration: opaque=OpaqueDeviceConfiguration requests=[s]
OpaqueDeviceConfiguration: driver=s! parameters=*
DeviceConstraint: distinctAttribute=s matchAttribute=s requests=[s]
DeviceRequest: exactly=ExactDeviceRequest firstAvailable=[DeviceSubRequest] name=s!
ExactDeviceRequest: adminAccess=b allocationMode=s capacity=CapacityRequirements count=i deviceClassName=s!
  selectors=[DeviceSelector] tolerations=[DeviceToleration]
DeviceSubRequest: allocationMode=s capacity=CapacityRequirements count=i deviceClassName=s! name=s!
  selectors=[DeviceSelector] tolerations=[DeviceToleration]
DeviceSelector: cel=CELDeviceSelector
CELDeviceSelector: expression=s!
CapacityRequirements: requests={q}
DeviceToleration: effect=s key=s operator=s tolerationSeconds=i value=s
ResourceClaimStatus: allocation=AllocationResult devices=[*] reservedFor=[ResourceClaimConsumerReference:uid]
AllocationResult: allocationTimestamp=t devices=DeviceAllocationResult nodeSelector=NodeSelector
DeviceAllocationResult: config=[*] results=[*]
ResourceClaimConsumerReference: apiGroup=s name=s! resource=s! uid=s!
CustomResourceDefinition: metadata=ObjectMeta spec=CustomResourceDefinitionSpec! status=CustomResourceDefinitionStatus
CustomResourceDefinitionSpec: conversion=CustomResourceConversion group=s! names=CustomResourceDefinitionNames!
  preserveUnknownFields=b scope=s! versions=[CustomResourceDefinitionVersion]!
CustomResourceConversion: strategy=s! webhook=WebhookConversion
WebhookConversion: clientConfig=WebhookClientConfig conversionReviewVersions=[s]!
WebhookClientConfig: caBundle=s service=ServiceReference url=s
ServiceReference: name=s namespace=s path=s port=i
CustomResourceDefinitionNames: categories=[s] kind=s! listKind=s plural=s! shortNames=[s] singular=s
CustomResourceDefinitionVersion: additionalPrinterColumns=[CustomResourceColumnDefinition] deprecated=b
  deprecationWarning=s name=s! schema=CustomResourceValidation selectableFields=[SelectableField] served=b! storage=b!
  subresources=CustomResourceSubresources
CustomResourceColumnDefinition: description=s format=s jsonPath=s! name=s! priority=i type=s!
CustomResourceValidation: openAPIV3Schema=*
SelectableField: jsonPath=s
CustomResourceSubresources: scale=CustomResourceSubresourceScale status=*
CustomResourceSubresourceScale: labelSelectorPath=s specReplicasPath=s! statusReplicasPath=s!
CustomResourceDefinitionStatus: acceptedNames=CustomResourceDefinitionNames
  conditions=[CustomResourceDefinitionCondition] observedGeneration=i storedVersions=[s]
CustomResourceDefinitionCondition: lastTransitionTime=t message=s observedGeneration=i reason=s status=s! type=s!
"""
