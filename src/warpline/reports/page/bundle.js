"use strict";(()=>{var zt="http://www.w3.org/2000/svg";function vt(i,t,e){for(let[n,r]of Object.entries(t))typeof r=="function"?i.addEventListener(n.replace(/^on/,""),r):r===!0?i.
setAttribute(n,""):r!==void 0&&r!==!1&&i.setAttribute(n,String(r));i.append(...e)}function c(i,t={},...e){let n=document.createElement(i);return vt(n,t,e),n}function R(i,t={},...e){
let n=document.createElementNS(zt,i);return vt(n,t,e),n}function G(i){let t=document.getElementById(i);if(!t)throw new Error(`the page has no #${i}`);return t}var Yt=[[1e9,"s"],[1e6,"ms"],[1e3,"µs"]],Xt=[[1e12,"TB"],[1e9,"GB"],[1e6,"MB"],[1e3,"kB"]],qt=.9995,wt=new Intl.NumberFormat("en",{maximumFractionDigits:0});function Vt(i){
let t=Math.abs(i);return t>=99.95?wt.format(i):t>=9.995?i.toFixed(1):i.toFixed(2)}function xt(i,t,e){for(let[n,r]of t)if(Math.abs(i)>=n*qt)return`${Vt(i/n)} ${r}`;
return`${i.toFixed(0)} ${e}`}var E=i=>xt(i,Yt,"ns"),V=i=>xt(i,Xt,"B"),K=(i,t)=>t?`${(100*i/t).toFixed(1)} %`:"–";var A=i=>wt.format(i),kt=(i,t,e=`${t}s`)=>`${A(i)} ${i===1?t:e}`;var z=120,Mt=1e3,jt=48;function Et(i,t,e){let n=i.lengths_ns.length,r=Math.max(1,...i.lengths_ns),s=Math.min(jt,Mt/n),o=Math.max(.5,s*.82),a=R("svg",{viewBox:`0\
 0 ${Mt} ${z}`,class:"steps",role:"img","aria-label":`${n} steps, the longest ${E(r)}`});i.lengths_ns.forEach((l,h)=>{let d=i.busy_ns[h]??0,u=i.starts_ns[h]??0,
f=h*s,p=l/r*z,g=d/r*z,w=R("g",{class:"step-bar",onclick:()=>e.goTo(u,u+l)},R("title",{},`step ${h}: ${E(l)}, GPU busy ${K(d,l)}`),R("rect",{x:f,width:o,y:z-p,height:p,
class:"part idle"}),R("rect",{x:f,width:o,y:z-g,height:g,class:"part compute"}));a.append(w)}),t.append(a,c("p",{class:"quiet"},"Height: length of the step; dar\
k: GPU busy. Click a step to see it on the timeline."))}var Jt=(i,t,e)=>({name:i,title:t,draw:e}),Tt=[Jt("steps","Steps",Et)];var At="warpline-theme",Lt=()=>matchMedia("(prefers-color-scheme: dark)"),St=[];function Qt(){try{let i=localStorage.getItem(At);return i==="light"||i==="dark"?
i:null}catch{return null}}var j=()=>(document.documentElement.dataset.theme??(Lt().matches?"dark":"light"))==="dark";function Rt(i){St.push(i)}function Ot(){let i=Qt();
i&&(document.documentElement.dataset.theme=i);let t=c("button",{type:"button",class:"theme"}),e=()=>{let r=j()?"Light":"Dark";t.textContent=r,t.setAttribute("ar\
ia-label",`${r} colours`)},n=()=>{e();for(let r of St)r()};return t.addEventListener("click",()=>{let r=j()?"light":"dark";document.documentElement.dataset.theme=
r;try{localStorage.setItem(At,r)}catch{}n()}),Lt().addEventListener("change",n),e(),t}var Pt=i=>{let t=/^(-?\d+)-(\d+)$/.exec(i??"");return t?[Number(t[1]),Number(t[2])]:void 0};function ct(i){let t=new URLSearchParams(i.replace(/^#/,"")),e=Pt(t.
get("at")),n=Pt(t.get("range")),r=t.get("event");return{...e?{at:e}:{},...n?{range:n}:{},...r!==null&&/^\d+$/.test(r)?{event:Number(r)}:{}}}function Ct({at:i,event:t,
range:e}){let n=r=>r.map(s=>Math.max(0,Math.round(s))).join("-");return[i?`at=${n(i)}`:"",t!==void 0?`event=${t}`:"",e?`range=${n(e)}`:""].filter(Boolean).join(
"&")}var Zt=["gpu","idle","syncs"],te=["api","ops","ranges","python"],ee={api:"CUDA API",ops:"ops",ranges:"ranges",python:"Python"},Y=class{rows=[];pinned;height;rowOf=new Map;y=0;constructor(t,e){
let{groups:n,head:r}=t;for(let o of Nt(n.map(a=>a.track.device))){this.add(22,{title:`GPU ${o}`});for(let a of Zt)for(let l of n)l.track.device===o&&l.track.kind===
a&&this.addGroup(l,l.track.label)}let s=this.y;for(let o of ne(n)){this.add(22,{title:r.threads[o]??"thread"});for(let a of te)for(let l of n)l.track.thread===o&&
l.track.kind===a&&this.addGroup(l,ee[a]??a)}this.height=this.y,this.pinned=s>e*.5?0:s}of(t){return this.rowOf.get(t)}add(t,e){let n={y:this.y,height:t,...e};this.
rows.push(n),n.lane&&this.rowOf.set(n.lane,n),this.y+=t}addGroup(t,e){let n=t.lanes,r=this.y;if(!n.length)return;let s=n.length>1||t.track.kind==="python";for(let o of t.
open?n:n.slice(0,14)){let a=o.depth===0;this.add(t.open?17:3,{lane:o,...a?{label:e}:{},...a&&s?{toggles:t}:{},...t.open?{}:{thin:!0}})}this.y=Math.max(this.y,r+
17)+5}},Nt=i=>[...new Set(i.filter(t=>t!==null))].sort((t,e)=>t-e);function ne(i){let t=(n,r)=>i.filter(s=>s.track.thread===n&&r.includes(s.track.kind)).reduce(
(s,o)=>s+o.track.lanes.reduce((a,l)=>a+l,0),0);return[...new Map(Nt(i.map(n=>n.track.thread)).map(n=>{let r=t(n,["api"]);return[n,{main:r>0&&t(n,["ranges","pyth\
on"])>0?1:0,calls:r,ops:t(n,["ops"])}]}))].sort(([,n],[,r])=>r.main-n.main||r.calls-n.calls||r.ops-n.ops).map(([n])=>n)}var re={matmul:[.56,.115,257],attention:[.5,.12,287],norm:[.66,.09,215],kernel:[.74,.06,240],copy:[.6,.1,308],memset:[.8,.02,250],comm:[.6,.15,350],graph:[.62,.08,
180],launch:[.8,.045,165],wait:[.66,.13,38],api_copy:[.74,.075,308],allocate:[.62,.09,20],api:[.83,.015,200],op:[.81,.05,255],range:[.88,.04,130],python:[.88,.022,
85],module:[.83,.055,90],sync:[.72,.1,45],idle:[.84,.01,250]},se={dispatch:"e69f00",sync:"d55e00",transfer:"56b4e9",input:"009e73",memory:"f0e442",comm:"cc79a7",
cold_start:"8c5a3c",launch_latency:"9aa0a6",dependency:"0072b2",profiler:"5f6368",unknown:"c9cdd2"},oe=new Set(["op","range","python","module"]),ie=new Set(["la\
unch","api","memset"]),ae=new Set(["matmul","attention"]),le=new Set(["launch","wait","api_copy","allocate","api","op","range","python","module"]);function he([
i,t,e]){let n=t*Math.cos(e*Math.PI/180),r=t*Math.sin(e*Math.PI/180),s=(i+.3963377774*n+.2158037573*r)**3,o=(i-.1055613458*n-.0638541728*r)**3,a=(i-.0894841775*n-
1.291485548*r)**3,l=h=>Math.round(255*Math.min(1,Math.max(0,h<=.0031308?12.92*h:1.055*h**(1/2.4)-.055)));return[l(4.0767416621*s-3.3077115913*o+.2309699292*a),l(
-1.2684380046*s+2.6097574011*o-.3413193965*a),l(-.0041960863*s-.7034186147*o+1.707614701*a)]}var Q=i=>{let t=i.replace("#","");return[0,2,4].map(e=>parseInt(t.slice(
e,e+2),16))},Ut=i=>`rgb(${i.join(" ")})`,U=i=>(255<<24|i[2]<<16|i[1]<<8|i[0])>>>0,ut=(i,t,e)=>i.map((n,r)=>Math.round(n*e+t[r]*(1-e))),mt=i=>Q(se[i]??"c9cdd2");
function J(i,t,e=.5){let[n,r,s]=re[i],o=n;return t&&(o=oe.has(i)?1.22-o:ie.has(i)?o-.3:ae.has(i)?o+.05:o-.04),he([o+(e-.5)*.055,r,s+(e*7%1-.5)*(le.has(i)?46:16)])}
function de(i){let t=2166136261;for(let e=0;e<i.length;e++)t=Math.imul(t^i.charCodeAt(e),16777619);return(t>>>8)%997/997}var ce=i=>.299*i[0]+.587*i[1]+.114*i[2]>
135;function $t(i,t,e){let n=new Uint32Array(i.length),r=new Uint32Array(i.length),s=new Uint8Array(i.length);return i.forEach((o,a)=>{let l=o.cause!==null?mt(o.
cause):null,h=l??J(o.kind,t,de(o.short||o.text));n[a]=U(h),r[a]=U(ut(h,e,.24)),s[a]=ce(l??J(o.kind,t))?1:0}),{full:n,faded:r,darkInk:s}}var $='Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", sans-serif';function Ht(){let i=getComputedStyle(document.documentElement),t=r=>i.getPropertyValue(
`--${r}`).trim(),e={paper:t("paper"),ink:t("ink"),dim:t("dim"),rule:t("rule"),grid:t("grid"),band:t("band"),accent:t("accent")},n=r=>U(Q(r));return{dark:j(),paper:Q(
e.paper),css:e,pixels:{paper:n(e.paper),grid:n(e.grid),rule:n(e.rule)}}}var X=class{constructor(t,e){this.events=t;this.width=e;this.line=new Uint32Array(e)}events;width;line;draw(t,e,n,r,s,o){let{events:a,line:l,width:h}=this,{start:d,
end:u,sum:f,name:p}=a,{beyond:g}=t,w=e+h/n,v=t.group.track.kind==="idle",b=a.after(t,e),M=!1;for(;b<g&&d[b]<w;){M=!0;let x=(d[b]-e)*n,L=(u[b]-e)*n;if(L-x>=1.5){
let S=Math.max(0,x),I=Math.min(h,L-x>4?L-1:L),W=r[p[b]],_=Math.ceil(S),D=Math.floor(I);D>_&&l.fill(W,_,D),_>S&&_<=h&&this.blend(_-1,W,_-S),I>D&&D<h&&this.blend(
D,W,I-D),o&&o(b,S,I),b++;continue}let N=Math.max(0,Math.floor(x)),F=e+(N+1)/n,T=a.leap(b,g,F);T-1>b&&(u[T-1]-d[T-1])*n>=1.5&&T--;let O=Math.max(0,u[T-1]-F)*n,P=(f[T]-
f[b])*n-O;if(N<h){let S=s!==null&&s.before[T]>s.before[b],I=T-b===1?b:S?ue(s,b,T):a.longest(b,T),W=P>=1||S?1:v?Math.max(.08,P):Math.max(.25,Math.sqrt(Math.max(0,
P)));this.blend(N,r[p[I]],W),O>.05&&N+1<h&&this.blend(N+1,r[p[T-1]],Math.min(1,O))}b=T}return M}blend(t,e,n){let r=this.line[t],s=1-n,o=(e>>>16&255)*n+(r>>>16&255)*
s,a=(e>>>8&255)*n+(r>>>8&255)*s,l=(e&255)*n+(r&255)*s;this.line[t]=(255<<24|o<<16|a<<8|l)>>>0}};function ue(i,t,e){let n=i.before[t],r=t,s=e-1;for(;r<s;){let o=r+
s>>>1;i.before[o+1]>n?s=o:r=o+1}return r}var me=26,pe=110,tt=class{constructor(t,e,n){this.canvas=t;this.events=e;this.time=n;this.context=t.getContext("2d",{alpha:!1}),this.layout=new Y(e,0),this.raster=
new X(e,1),this.image=new ImageData(1,1),this.pixels=this.ground=new Uint32Array(1)}canvas;events;time;layout;scroll=0;width=64;height=64;took={raster:0,draw:0};context;ratio=1;raster;image;pixels;ground;textWidths=new Map;resize(t,e,n){
this.width=Math.max(212,Math.floor(t)),this.height=Math.max(71,Math.floor(e)),this.ratio=n,this.canvas.width=this.width*n,this.canvas.height=this.height*n;let r=Math.
floor((this.width-148)*n),s=Math.floor((this.height-39)*n);this.image=new ImageData(r,s),this.pixels=new Uint32Array(this.image.data.buffer),this.raster=new X(this.
events,r),this.ground=new Uint32Array(r),this.place()}place(){this.layout=new Y(this.events,this.height-39)}x(t){return 148+(t-this.time.start)/this.time.span*(this.
width-148)}timeAt(t){return this.time.start+(t-148)/(this.width-148)*this.time.span}screenY(t){return 39+t.y-(t.y<this.layout.pinned?0:this.scroll)}box(t){let e=this.
layout.of(this.events.laneOf(t));if(!e)return null;let n=this.x(this.events.start[t]);return{x:n,right:Math.max(this.x(this.events.end[t]),n+2),y:this.screenY(e),
height:e.height-(e.thin?0:1),row:e}}rowAt(t){let{rows:e,pinned:n}=this.layout,r=t<39+n;return e.find(s=>s.y<n===r&&t>=this.screenY(s)&&t<this.screenY(s)+Math.max(
s.height,s.toggles?17:0))}eventAt(t,e){let n=t<148||e<39?void 0:this.rowAt(e),r=n?.lane;if(!r?.ready||e>=this.screenY(n)+n.height)return-1;let{events:s}=this,o=this.
time.span/(this.width-148),a=this.timeAt(t),l=s.after(r,a-o);if(l>=r.beyond||s.start[l]>a+o*1.5)return-1;let h=s.leap(l,r.beyond,a+o);return h-l<=1||s.start[l]<=
a&&s.end[l]>a&&s.duration(l)>o*2?l:s.longest(l,h)}draw(t,e,n,r){let s=performance.now(),{layout:o,context:a,ratio:l}=this;this.scroll=Math.max(0,Math.min(this.scroll,
o.height-(this.height-39)+8));let h=fe(this.time.span,(this.width-148)/pe),d=[];this.background(t,h);let{pinned:u}=o;for(let f of o.rows)f.y>=u&&this.lane(f,u,n,
r,d);for(let f of o.rows)f.y<u&&this.lane(f,0,n,r,d);a.setTransform(l,0,0,l,0,0),a.putImageData(this.image,Math.round(148*l),Math.round(39*l)),this.took.raster=
performance.now()-s,this.labels(d,t,e,r),this.ruler(t,h),this.names(t),this.took.draw=performance.now()-s}background(t,e){let{ground:n,pixels:r,time:s}=this,o=n.
length,a=this.image.height,l=o/s.span;n.fill(t.pixels.paper);for(let h=Math.ceil(s.start/e)*e;h<s.end;h+=e)n[Math.min(o-1,Math.floor((h-s.start)*l))]=t.pixels.grid;
for(let h of this.events.head.steps)for(let d of[h.start_ns,h.end_ns])d>s.start&&d<s.end&&(n[Math.floor((d-s.start)*l)]=t.pixels.rule);r.set(n,0);for(let h=1;h<
a;h*=2)r.copyWithin(h*o,0,Math.min(h,a-h)*o)}lane(t,e,n,r,s){if(!t.lane?.ready)return;let{ratio:o,raster:a,pixels:l}=this,h=a.width,d=this.image.height,u=this.screenY(
t)-39;if(u+t.height<=e||u>=this.height-39)return;a.line.set(this.ground);let f=me*o,p=t.thin?null:(v,b,M)=>{M-b>f&&s.push({i:v,left:b/o,right:M/o,y:u,floor:e})};
if(!a.draw(t.lane,this.time.start,h/this.time.span,n,r,p))return;let g=Math.max(Math.round(e*o),Math.round(u*o)),w=Math.min(d,Math.round((u+t.height-(t.thin?0:1))*
o));for(let v=g;v<w;v++)l.set(a.line,v*h)}fitted(t,e){let n=this.textWidths.get(t);if(n===void 0&&this.textWidths.set(t,n=this.context.measureText(t).width),n<=
e)return t;let r=Math.floor(t.length*(e-8)/n);return r<2?"":`${t.slice(0,r)}…`}labels(t,e,n,r){let{context:s,events:o}=this;s.font=`11px ${$}`,s.textBaseline=
"middle",s.textAlign="left";let a=l=>r&&!r.names[l]?e.css.dim:n.darkInk[l]?"#14181d":"#fff";for(let l of["#14181d","#fff",e.css.dim]){s.fillStyle=l;for(let{i:h,
left:d,right:u,y:f,floor:p}of t){if(a(o.name[h])!==l||f+4<p)continue;let g=this.fitted(o.label(h),u-d-8);g&&s.fillText(g,148+d+4,39+f+17/2)}}}ruler(t,e){let{context:n,
time:r,width:s}=this,{steps:o}=this.events.head;n.fillStyle=t.css.paper,n.fillRect(0,0,s,39),n.fillStyle=t.css.dim;let[a,l]=r.end>=1e9?["s",1e9]:r.end>=1e6?["ms",
1e6]:["µs",1e3],h=Math.max(0,-Math.floor(Math.log10(e/l)+1e-9));for(let d=Math.ceil(r.start/e)*e;d<r.end;d+=e){let u=this.x(d);n.fillRect(Math.floor(u),16,1,6),
n.fillText(`${(d/l).toFixed(h)} ${a}`,u+4,22/2+1)}n.save(),n.beginPath(),n.rect(148,22,s-148,17),n.clip(),o.forEach((d,u)=>{let f=this.x(d.start_ns),p=this.x(d.
end_ns);if(p<148||f>s)return;n.fillStyle=t.css.band,n.fillRect(f,22,Math.max(1,p-f-1),14);let g=Math.max(f,148),w=this.fitted(`step ${u}  ${E(d.end_ns-d.start_ns)}`,
Math.min(p,s)-g-10);n.fillStyle=t.css.dim,w&&n.fillText(w,g+5,22+17/2-1)}),n.restore()}names(t){let{context:e,layout:n,height:r}=this,{rows:s,pinned:o}=n;e.fillStyle=
t.css.paper,e.fillRect(0,39,148,r),e.save(),e.beginPath(),e.rect(0,39+o,148,r),e.clip();for(let a of s)a.y>=o&&this.rowName(a,t);e.restore();for(let a of s)a.y<
o&&this.rowName(a,t);e.fillStyle=t.css.rule,e.fillRect(147,0,1,r),e.fillRect(0,38,this.width,1),o&&e.fillRect(0,39+o-1,this.width,1),e.fillStyle=t.css.dim,e.font=
`11px ${$}`,this.events.head.steps.length&&e.fillText("steps",10,22+17/2-1)}rowName(t,e){let{context:n}=this,r=this.screenY(t);r>this.height||r+22<39||(t.title!==
void 0?(n.fillStyle=e.css.ink,n.font=`600 11px ${$}`,n.fillText(this.fitted(t.title,130),10,r+22/2+2)):t.label&&(n.fillStyle=e.css.dim,n.font=`11px ${$}`,n.fillText(
this.fitted(t.label,118),22,r+17/2),t.toggles&&n.fillText(t.toggles.open?"▾":"▸",10,r+17/2)))}};function fe(i,t){let e=i/Math.max(2,t),n=10**Math.floor(Math.
log10(e)),r=e/n;return n*(r>5?10:r>2?5:r>1?2:1)}function ye(i){let t=Uint8Array.fromBase64;if(t)return t.call(Uint8Array,i);let e=atob(i),n=new Uint8Array(e.length);for(let r=0;r<e.length;r++)n[r]=e.charCodeAt(
r);return n}async function ge(i){let t=new Blob([i]).stream().pipeThrough(new DecompressionStream("deflate-raw"));return new Uint8Array(await new Response(t).arrayBuffer())}
async function et(i){let t=G(i),e=t.textContent??"";return t.remove(),ge(ye(e))}async function It(i){return JSON.parse(new TextDecoder().decode(await et(i)))}function pt(i,t,e,n,r){
let s=i[t++]??0;for(let o=0;o<e;o++)n[r+o]=i[t+o];for(let o=1,a=256;o<s;o++,a*=256){let l=t+o*e;for(let h=0;h<e;h++)n[r+h]+=i[l+h]*a}return t+s*e}var ft=i=>i%2?
-(i+1)/2:i/2;var C=64,be=64,m=-1,nt=class{constructor(t){this.head=t;let e=t.events;this.start=new Float64Array(e),this.end=new Float64Array(e),this.sum=new Float64Array(e+1),
this.name=t.names.length<65536?new Uint16Array(e):new Uint32Array(e),this.argument=new Uint32Array(e),this.link=new Int32Array(e),this.counts=new Uint32Array(t.
names.length),this.longestOf=new Uint32Array(Math.ceil(e/C));let n=0;this.groups=t.tracks.map(r=>{let s=[],o={track:r,lanes:s,open:r.kind!=="python"};return r.lanes.
forEach((a,l)=>s.push({group:o,depth:l,first:n,beyond:n+=a,ready:!1})),o}),this.lanes=this.groups.flatMap(r=>r.lanes)}head;start;end;sum;name;argument;link;counts;groups;lanes;longestOf;read(t,e,n,r){
for(let s=n;s<r;s++)e=this.readPart(t,e,this.lanes.filter(o=>o.group.track.part===s))}readPart(t,e,n){let{start:r,end:s,sum:o,name:a,argument:l,link:h,counts:d}=this,
u=n[0]?.first??0,f=n[n.length-1]?.beyond??0,p=f-u;for(let v of[r,s,a,l])e=pt(t,e,p,v,u);let g=new Float64Array(p);e=pt(t,e,p,g,0);for(let v=0,b=m;v<p;v++)h[u+v]=
b+=ft(g[v]);let w=o[u]??0;for(let v of n){let b=0;for(let M=v.first;M<v.beyond;M++){let x=s[M];r[M]=b+=ft(r[M]),s[M]=b+=x,o[M+1]=w+=x,d[a[M]]++}v.ready=!0}for(let v=Math.
floor(u/C);v*C<f;v++){let b=Math.max(v*C,u);for(let M=b+1,x=Math.min(f,(v+1)*C);M<x;M++)this.duration(M)>this.duration(b)&&(b=M);this.longestOf[v]=b}return e}duration(t){
return this.end[t]-this.start[t]}text(t){return this.head.names[this.name[t]].text}label(t){let e=this.head.names[this.name[t]];return e.short||e.text}after(t,e){
let n=t.first,r=t.beyond;for(;n<r;){let s=n+r>>>1;this.end[s]>e?r=s:n=s+1}return n}leap(t,e,n){let{start:r}=this,s=1,o=t;for(;o+s<e&&r[o+s]<n;)o+=s,s*=2;let a=Math.
min(e,o+s);for(o++;o<a;){let l=o+a>>>1;r[l]<n?o=l+1:a=l}return o}longest(t,e){let n=t,r=this.duration(t),s=h=>{let d=this.duration(h);d>r&&(r=d,n=h)},o=Math.ceil(
t/C),a=Math.floor(e/C);if(a<=o){for(let h=t+1;h<e;h++)s(h);return n}for(let h=t+1;h<o*C;h++)s(h);let l=Math.max(1,Math.floor((a-o)/be));for(let h=o;h<a;h+=l)s(this.
longestOf[h]);for(let h=a*C;h<e;h++)s(h);return n}laneOf(t){let e=0,n=this.lanes.length-1;for(;e<n;){let r=e+n+1>>1;this.lanes[r].first<=t?e=r:n=r-1}for(;this.lanes[e].
beyond<=t;)e++;return this.lanes[e]}kind(t){return this.laneOf(t).group.track.kind}};var ve=6,rt=class{constructor(t,e,n,r){this.events=t;this.relations=e;this.go=n;this.search=r}events;relations;go;search;list=c("dl");element(t){this.list.replaceChildren();
let{events:e}=this;switch(this.say("duration",E(e.duration(t))),this.say("begins",we(e.start[t])),e.kind(t)){case"gpu":this.operation(t);break;case"idle":this.gap(
t);break;case"api":this.call(t);break;case"ops":this.op(t);break;default:break}let n=e.head.names[e.name[t]];return n.short&&n.cause===null&&this.say("full name",
c("code",{},n.text)),c("div",{class:"body"},c("div",{class:"facts"},this.list),this.within(t))}same(t){let{events:e}=this,n=e.label(t);return c("p",{class:"quie\
t"},`${A(e.counts[e.name[t]])} of this name · `,c("button",{class:"go",onclick:()=>this.search(n)},"search"))}say(t,...e){let n=e.filter(r=>r!=null&&r!=="");n.
length&&this.list.append(c("dt",{},t),c("dd",{},...n))}link(t,e=""){return c("button",{class:"go",title:this.events.text(t),onclick:()=>this.go(t)},this.events.
label(t)+e)}operation(t){let{events:e,relations:n}=this,{head:r,start:s}=e,o=r.launches[e.argument[t]-1],a=n.callOf(t),l=r.names[e.name[t]].identity;if(o?.floor_ns!=
null&&this.say("roofline",`${K(o.floor_ns,e.duration(t))} of it reached: at least ${E(o.floor_ns)}, bound by ${o.bound??"?"}`),l!==null)for(let[d,u]of r.identities[l].
facts)this.say(d,u);o?.grid&&o.block&&(this.say("grid × block",`${o.grid.join(", ")} × ${o.block.join(", ")}`),this.say("threads",A([...o.grid,...o.block].reduce(
(d,u)=>d*u,1)))),o?.registers!=null&&this.say("registers, shared",`${o.registers} a thread, ${V(o.shared_bytes??0)} a block`),o?.moved_bytes!=null&&this.say("mo\
ved",`${V(o.moved_bytes)}${e.duration(t)?`, ${V(o.moved_bytes/e.duration(t)*1e9)}/s`:""}`),o?.source&&this.say("memory",`${o.source} → ${o.target??"?"}`),a!==
m&&(this.say("launched by",this.link(a,`  ${E(e.duration(a))}`)),this.say("launch→start",E(s[t]-s[a])));let h=n.opOf(t);h!==m&&(this.say("op",this.link(h)),this.
inputs(h))}inputs(t){let e=this.events.head.inputs[this.events.argument[t]-1];e&&(e.shapes&&this.say("shapes",c("code",{},e.shapes)),e.dtypes&&this.say("types",
c("code",{},e.dtypes)),e.module&&this.say("module",e.module))}call(t){let{events:e,relations:n}=this,r=n.launched(t),s=e.link[t];r.length&&(this.say("launches",
this.link(r[0]),r.length>1?` and ${A(r.length-1)} more`:null),this.say("launch→start",E(e.start[r[0]]-e.start[t]))),s!==m&&(this.say("op",this.link(s)),this.inputs(
s))}op(t){let{events:e,relations:n}=this,r=e.link[t];this.inputs(t);let s=n.workOf(t);if(s.length){let o=s.reduce((a,l)=>a+e.duration(l),0);this.say("on the GPU",
this.link(s[0]),s.length>1?` and ${A(s.length-1)} more, ${E(o)} in all`:null)}if(r!==m)this.say("backward of",this.link(r));else{let o=n.backwardOf(t);o.length&&
this.say("differentiated by",this.link(o[0]))}}gap(t){let{events:e}=this,n=e.laneOf(t),{start:r,end:s,link:o}=e,a=t,l=t;for(;a>n.first&&o[a-1]===o[t]&&r[a]===s[a-
1];)a--;for(;l+1<n.beyond&&o[l+1]===o[t]&&s[l]===r[l+1];)l++;let h=[];for(let d=a;d<=l;d++)h.push(`${e.label(d)} ${E(e.duration(d))}`);this.say("whole gap",`${E(
s[l]-r[a])}: ${h.join(", ")}`),o[t]!==m&&this.say("ended by",this.link(o[t]))}within(t){let{events:e,relations:n}=this,r=e.laneOf(t),{kind:s}=r.group.track,o=c(
"div",{class:"chain"}),a=n.callOf(t),l=r.group.track.thread!==null?t:a!==m?a:s==="gpu"?n.opOf(t):m;if(l===m)return o;let{thread:h}=e.laneOf(l).group.track,d=e.start[l],
u=n.around(n.group("python",h),d,s==="python"?r.depth:1/0),f=s==="python"?[]:n.around(n.group("ranges",h),d,s==="ranges"?r.depth:1/0),p=s==="python"||s==="range\
s"?[]:n.around(n.group("ops",h),d,s==="ops"?r.depth:1/0),g=[...f,...u.slice(-ve),...p].filter(w=>w!==t);return g.length&&o.append(c("h3",{},"within"),...g.map(w=>this.
link(w,`  ${E(e.duration(w))}`))),o}},we=i=>`${(i/1e6).toFixed(3)} ms`;var xe=[[["W","S"],"zoom in, out (also Ctrl and wheel, pinch; wheel alone once the timeline has the focus)"],[["A","D"],"pan (also drag, Shift and wheel)"],[["←",
"→"],"previous, next event of the row; without a selection, pan"],[["↑","↓"],"out to the caller, in to the callee; without a selection, scroll"],[["Enter"],
"select an event in the middle of the view"],[["F","0"],"fit the selection, the whole trace"],[["L"],"follow the link: kernel ↔ launch ↔ op, backward ↔ forward"],
[["G"],"next, largest gap of the cause that is searched for"],[["R"],"select the visible range (also Shift and drag, or drag on the ruler)"],[["P"],"fold or unf\
old Python"],[["/","N","Shift+N"],"search, next, previous match"],[["Esc"],"clear"]];function _t(i){let t=c("input",{type:"search",placeholder:"Search names   /",
spellcheck:"false",autocomplete:"off","aria-label":"Search names"}),e=c("button",{type:"button","aria-label":"Previous match",disabled:!0},"↑"),n=c("button",{
type:"button","aria-label":"Next match",disabled:!0},"↓"),r=c("output",{"aria-live":"polite"}),s=c("output"),o=c("button",{type:"button",title:"Whole trace (0\
)"},"Whole trace"),a=c("button",{type:"button","aria-label":"Keys",title:"Keys (?)"},"?"),l=c("ul",{class:"legend","aria-label":"Causes of idle time"}),h=c("can\
vas",{class:"map",role:"img","aria-label":"The whole trace; drag to move the view"}),d=c("canvas",{class:"view",tabindex:0,role:"application","aria-label":"Time\
line. W and S zoom, A and D pan, Enter selects, arrow keys move between events, slash searches, question mark lists the keys."}),u=c("canvas",{class:"over","ari\
a-hidden":"true"}),f=c("div",{class:"tip",role:"tooltip",hidden:!0}),p=c("div",{class:"stage"},d,u,f),g=c("aside",{class:"event","aria-label":"Selection","aria-\
live":"polite",hidden:!0}),w=c("dialog",{"aria-label":"Keys"},c("h2",{},"Keys"),c("dl",{},...xe.flatMap(([b,M])=>[c("dt",{},...b.flatMap(x=>[c("kbd",{},x)," "])),
c("dd",{},M)])),c("form",{method:"dialog"},c("button",{autofocus:!0},"Close"))),v=c("div",{class:"tools",role:"toolbar","aria-label":"Timeline tools"},t,e,n,r,c(
"span",{class:"room"}),s,o,a);return i.replaceChildren(c("h2",{},"Timeline"),l,v,h,p,g,w),{find:t,previous:e,next:n,found:r,span:s,whole:o,help:a,legend:l,map:h,
stage:p,view:d,over:u,tip:f,panel:g,keys:w}}var ke=4,Dt=240,Me=60,Ee={w:[.2,-.2],s:[-.25,.25],a:[-.2,-.2],d:[.2,.2]};function Gt(i){Ae(i),Se(i),Re(i);let{find:t,next:e,previous:n,whole:r,help:s,keys:o}=i.
parts;t.addEventListener("input",()=>i.seek(t.value)),e.addEventListener("click",()=>i.next(1)),n.addEventListener("click",()=>i.next(-1)),r.addEventListener("c\
lick",()=>i.time.glide(0,i.time.length)),s.addEventListener("click",()=>o.showModal())}function Te(i,t){let{events:e,picture:n,time:r,relations:s}=i,{tip:o,view:a}=i.
parts,l=n.eventAt(t.offsetX,t.offsetY);if(l!==i.hovered&&(i.hovered=l,i.drawOver()),a.style.cursor=t.offsetX<148?"default":t.offsetY<39?"col-resize":l!==m?"poin\
ter":"grab",o.hidden=l===m,l===m)return;let h=r.span/(n.width-148),d=e.leap(l,e.laneOf(l).beyond,e.start[l]+h)-l-1,u=s.opOf(l);o.replaceChildren(c("b",{},e.label(
l)),c("span",{},E(e.duration(l)))),e.kind(l)==="gpu"&&u!==m&&o.append(c("span",{},e.text(u))),e.kind(l)==="idle"&&e.link[l]!==m&&o.append(c("span",{},`before ${e.
label(e.link[l])}`)),d>0&&e.duration(l)<h*2&&o.append(c("em",{},`${A(d+1)} events in this column`));let{offsetWidth:f,offsetHeight:p}=o,g=t.offsetY+18;o.style.transform=
`translate(${Math.min(t.offsetX+14,n.width-f-6)}px, ${g+p>n.height?t.offsetY-p-10:g}px)`}function Ae(i){let{picture:t,time:e,parts:{view:n,tip:r}}=i,s=new Map,o=null;
n.addEventListener("pointerdown",l=>{n.setPointerCapture(l.pointerId),s.set(l.pointerId,l),e.stop();let h=l.offsetX>=148&&(l.shiftKey||l.offsetY<39);o={x:l.offsetX,
y:l.offsetY,start:e.start,end:e.end,scroll:t.scroll,selects:h,moved:!1}}),n.addEventListener("pointermove",l=>{let h=s.get(l.pointerId);if(!h||!o){Te(i,l);return}
if(s.set(l.pointerId,l),s.size===2){let p=[...s.values()].find(v=>v.pointerId!==l.pointerId),g=Math.abs(h.offsetX-p.offsetX),w=Math.abs(l.offsetX-p.offsetX);g>8&&
w>8&&e.zoom(g/w,t.timeAt((l.offsetX+p.offsetX)/2)),o.moved=!0;return}let d=l.offsetX-o.x,u=l.offsetY-o.y;if(!o.moved&&Math.hypot(d,u)<ke)return;if(o.moved=!0,r.
hidden=!0,o.selects){i.selectRange([t.timeAt(Math.max(148,o.x)),t.timeAt(Math.max(148,l.offsetX))]);return}n.style.cursor="grabbing";let f=-d/(t.width-148)*(o.end-
o.start);t.scroll=o.scroll-u,e.move(o.start+f,o.end+f)});let a=l=>{s.delete(l.pointerId),o&&!o.moved&&l.type==="pointerup"&&Le(i,l),s.size||(o=null)};n.addEventListener(
"pointerup",a),n.addEventListener("pointercancel",a),n.addEventListener("pointerleave",()=>{r.hidden=!0,i.hovered=m,i.drawOver()}),n.addEventListener("dblclick",
l=>{let h=t.eventAt(l.offsetX,l.offsetY);h!==m&&i.fit(h)})}function Le(i,t){let{picture:e}=i;if(t.offsetX>=148){i.selectRange(null),i.choose(e.eventAt(t.offsetX,
t.offsetY));return}let n=e.rowAt(t.offsetY)?.toggles;n&&(n.open=!n.open,e.place(),i.redraw())}function Se(i){let{picture:t,time:e,parts:{view:n,tip:r}}=i;n.addEventListener(
"wheel",s=>{let o=s.shiftKey||Math.abs(s.deltaX)>Math.abs(s.deltaY);if(!s.ctrlKey&&!o&&document.activeElement!==n)return;s.preventDefault(),r.hidden=!0,e.stop();
let a=s.deltaMode===WheelEvent.DOM_DELTA_LINE?16:1,l=s.deltaX*a,h=s.deltaY*a;s.offsetX<148?(t.scroll+=h,i.redraw()):o?e.pan((l||h)/(t.width-148)*e.span):e.zoom(
Math.exp(Math.max(-Dt,Math.min(Dt,h))*(s.ctrlKey?.01:.0022)),t.timeAt(s.offsetX))},{passive:!1})}function Re(i){let{find:t,view:e,keys:n,panel:r}=i.parts;t.addEventListener(
"keydown",s=>{s.key==="Enter"&&(i.next(s.shiftKey?-1:1),s.preventDefault()),s.key==="Escape"&&(t.value="",i.seek(""),e.focus()),s.stopPropagation()}),addEventListener(
"keydown",s=>{if(s.metaKey||s.ctrlKey||s.altKey||n.open)return;let o=s.target;o!==e&&o!==document.body&&!r.contains(o)||o.tagName==="BUTTON"&&(s.key==="Enter"||
s.key===" ")||o===document.body&&s.key.startsWith("Arrow")||Oe(i,s)&&s.preventDefault()})}function Oe(i,t){let{time:e,picture:n,chosen:r,events:s}=i,o=t.key.length===
1?t.key.toLowerCase():t.key,a=Ee[o];if(a)return e.glide(e.start+a[0]*e.span,e.end+a[1]*e.span),!0;switch(o){case"?":return i.parts.keys.showModal(),!0;case"/":return i.
parts.find.focus(),i.parts.find.select(),!0;case"n":return i.next(t.shiftKey?-1:1),!0;case"0":return e.glide(0,e.length),!0;case"f":return r!==m&&i.fit(r),!0;case"\
l":return i.followLink(),!0;case"g":return i.nextGap(),!0;case"p":return i.toggle("python"),!0;case"r":return i.selectRange([e.start,e.end]),!0;case"Enter":return r===
m&&i.choose(Pe(i)),!0;case"Escape":return i.selectRange(null),r!==m?i.choose(m):(i.parts.find.value="",i.seek("")),!0;case"ArrowLeft":case"ArrowRight":{let l=o===
"ArrowRight"?1:-1;if(r===m)return e.glide(e.start+.15*l*e.span,e.end+.15*l*e.span),!0;let h=s.laneOf(r),d=r+l;return d>=h.first&&d<h.beyond&&i.choose(d,!0),!0}case"\
ArrowUp":case"ArrowDown":{let l=o==="ArrowDown"?1:-1;if(r===m)return n.scroll+=Me*l,i.redraw(),!0;let h=i.relations.neighbour(r,l);return h!==m&&i.choose(h,!0),
!0}default:return!1}}function Pe(i){let{events:t,time:e}=i,n=(e.start+e.end)/2;for(let r of t.lanes.filter(s=>s.ready).sort((s,o)=>+(o.group.track.kind==="gpu")-
+(s.group.track.kind==="gpu"))){let s=t.after(r,n);if(s<r.beyond&&t.start[s]<e.end)return s}return m}var Ce=4,yt=["matmul","comm","copy","memset"],st=class{constructor(t,e,n){this.canvas=t;this.events=e;this.time=n;this.context=t.getContext("2d");let r=s=>{let o=(s.
offsetX-148)/(t.clientWidth-148)*n.length,a=n.span/2;n.stop(),n.move(o-a,o+a)};t.addEventListener("pointerdown",s=>{t.setPointerCapture(s.pointerId),r(s)}),t.addEventListener(
"pointermove",s=>{s.buttons&&r(s)})}canvas;events;time;context;image=null;ratio=1;resize(t){this.ratio=t,this.canvas.width=this.canvas.clientWidth*t,this.canvas.
height=this.canvas.clientHeight*t,this.image=null}forget(){this.image=null}draw(t){let{context:e,canvas:n,ratio:r,time:s}=this;if(n.width<=148*r)return;this.image??=
this.sketch(t),e.putImageData(this.image,0,0),e.setTransform(r,0,0,r,0,0);let o=n.clientWidth-148,a=n.clientHeight,l=148+s.start/s.length*o,h=148+s.end/s.length*
o;e.fillStyle=t.css.dim,e.font=`11px ${$}`,e.textBaseline="middle",e.fillText("whole trace",10,a/2),e.fillStyle=`${t.css.paper}b8`,e.fillRect(148,0,l-148,a),e.fillRect(
h,0,148+o-h,a),e.strokeStyle=t.css.accent,e.lineWidth=1.5,e.strokeRect(l+.75,1.25,Math.max(2,h-l-1.5),a-2.5)}sketch(t){let{events:e,canvas:n,ratio:r}=this,{head:s}=e,
{width:o,height:a}=n,l=Math.round(148*r),h=Math.max(1,o-l),d=this.busiestDevice(),u=yt.map(()=>new Float32Array(h)),f=s.causes.map(()=>new Float32Array(h));for(let x of e.
lanes)x.group.track.device===d&&(x.group.track.kind==="gpu"&&this.spread(x,h,L=>u[Math.max(0,yt.indexOf(s.names[e.name[L]].kind))]),x.group.track.kind==="idle"&&
this.spread(x,h,L=>f[Math.max(0,s.causes.indexOf(s.names[e.name[L]].cause??""))]));let p=new ImageData(o,a),g=new Uint32Array(p.data.buffer),w=Math.round(Ce*r),
v=a-2*w,b=yt.map(x=>U(J(x,t.dark))),M=s.causes.map(x=>U(ut(mt(x),t.paper,.8)));g.fill(t.pixels.paper);for(let x=0;x<h;x++){let L=a-w,N=1,F=(T,O)=>{let P=Math.max(
w,L-T*v);for(let S=Math.round(L)-1;S>=Math.round(P);S--)g[S*o+l+x]=O;L=P};u.forEach((T,O)=>{let P=Math.min(N,T[x]);F(P,b[O]),N-=P}),f.forEach((T,O)=>F(T[x],M[O]))}
return p}busiestDevice(){let t=new Map;for(let{group:e,first:n,beyond:r}of this.events.lanes){let{device:s,kind:o}=e.track;o==="gpu"&&s!==null&&t.set(s,(t.get(s)??
0)+this.events.sum[r]-this.events.sum[n])}return[...t].sort((e,n)=>n[1]-e[1])[0]?.[0]??null}spread(t,e,n){let{start:r,end:s}=this.events,o=e/this.time.length;for(let a=t.
first;a<t.beyond;a++){let l=r[a]*o,h=s[a]*o,d=n(a);for(let u=Math.floor(l);u<h&&u<e;u++)d[u]+=Math.min(h,u+1)-Math.max(l,u)}}};var ot=class{constructor(t,e){this.canvas=t;this.picture=e;this.context=t.getContext("2d")}canvas;picture;context;ratio=1;resize(t){this.ratio=t,this.canvas.width=
this.picture.width*t,this.canvas.height=this.picture.height*t}draw(t,e){let{context:n,picture:r,ratio:s}=this;n.setTransform(s,0,0,s,0,0),n.clearRect(0,0,r.width,
r.height),n.save(),n.beginPath(),n.rect(148,0,r.width-148,r.height),n.clip(),t.range&&this.range(t.range,e),n.beginPath(),n.rect(148,39,r.width-148,r.height),n.
clip();for(let o of t.family)this.frame(o,e.css.dim,1.5);for(let[o,a]of t.arrows)this.arrow(o,a,e);t.chosen>=0&&this.frame(t.chosen,e.css.accent,2),t.hovered>=0&&
t.hovered!==t.chosen&&this.frame(t.hovered,e.css.ink,1),n.restore()}range([t,e],n){let{context:r,picture:s}=this,o=s.x(t),a=s.x(e);r.globalAlpha=.12,r.fillStyle=
n.css.accent,r.fillRect(o,0,a-o,s.height),r.globalAlpha=1,r.fillRect(o,0,1,s.height),r.fillRect(a-1,0,1,s.height)}frame(t,e,n){let{context:r,picture:s}=this,o=s.
box(t),{pinned:a}=s.layout;if(!o||o.row.y>=a&&o.y<39+a-8)return;let l=Math.max(144,o.x),h=Math.min(s.width+4,o.right);r.strokeStyle=e,r.lineWidth=n,r.strokeRect(
l-.5,o.y-.5,Math.max(2,h-l),o.height+1)}arrow(t,e,n){let{context:r,picture:s}=this,o=s.box(t),a=s.box(e);if(!o||!a)return;let l=o.y>a.y,h=o.x,d=a.x+1,u=l?1:-1,f=Math.
max(39+s.layout.pinned-4,l?o.y:o.y+o.height),p=l?a.y+a.height:a.y,g=(p-f)*.55||20;for(let[w,v]of[[n.css.paper,4],[n.css.accent,1.75]])r.strokeStyle=r.fillStyle=
w,r.lineWidth=v,r.beginPath(),r.moveTo(h,f),r.bezierCurveTo(h,f+g,d,p-g,d,p+5*u),r.stroke();r.beginPath(),r.arc(h,f,3,0,7),r.fill(),r.beginPath(),r.moveTo(d,p),
r.lineTo(d-4.5,p+8*u),r.lineTo(d+4.5,p+8*u),r.fill()}};var gt=24,it=class{constructor(t){this.events=t}events;*rows(t){for(let e of this.events.lanes)if(e.group.track.kind===t)for(let n=e.first;n<e.beyond;n++)yield n}linkedTo(t,e){
let n=[];for(let r of this.rows(t))this.events.link[r]===e&&n.push(r);return n}launched(t){return this.linkedTo("gpu",t)}backwardOf(t){return this.linkedTo("ops",
t)}callsOf(t){let{events:e}=this,{start:n,end:r}=e,s=e.laneOf(t).group.track.thread,o=[];for(let a of e.lanes)if(!(a.group.track.kind!=="api"||a.group.track.thread!==
s))for(let l=e.after(a,n[t]);l<a.beyond&&n[l]<r[t];l++)n[l]>=n[t]&&o.push(l);return o}workOf(t){let e=new Set(this.callsOf(t)),n=[];for(let r of this.rows("gpu")){
let s=this.events.link[r];(e.has(s)||s===t)&&n.push(r)}return n}callOf(t){let{events:e}=this,n=e.link[t];return e.kind(t)==="gpu"&&n!==m&&e.kind(n)==="api"?n:m}opOf(t){
let{events:e}=this,n=e.kind(t);if(n==="ops")return t;if(n==="api")return e.link[t];if(n!=="gpu")return m;let r=this.callOf(t);return r!==m?e.link[r]:e.link[t]}arrows(t){
let{events:e}=this,n=e.link[t];switch(e.kind(t)){case"gpu":case"syncs":return n!==m?[[n,t]]:[];case"idle":return n!==m&&e.link[n]!==m?[[e.link[n],n]]:[];case"ap\
i":return this.launched(t).slice(0,gt).map(r=>[t,r]);case"ops":return[...n!==m?[[n,t]]:this.backwardOf(t).slice(0,gt).map(s=>[t,s]),...this.workOf(t).slice(0,gt).
map(s=>[e.link[s],s])];default:return[]}}family(t){let{events:e}=this,n=e.link[t],r=[n];return n!==m&&r.push(e.link[n]),e.kind(t)==="idle"&&n!==m&&e.link[n]!==m&&
r.push(e.link[e.link[n]]),r.filter(s=>s!==m)}around(t,e,n=1/0){let r=[];for(let s of t?.lanes??[]){if(s.depth>=n||!s.ready)continue;let o=this.events.after(s,e);
o<s.beyond&&this.events.start[o]<=e&&r.push(o)}return r}group(t,e){return this.events.groups.find(n=>n.track.kind===t&&n.track.thread===e)}neighbour(t,e){let{events:n}=this,
r=n.laneOf(t),s=r.group.lanes[r.depth+e];if(!s)return m;let o=e<0?n.after(s,n.start[t]):Ne(n,s,n.start[t]);return o<s.beyond&&n.start[o]<n.end[t]&&n.end[o]>n.start[t]?
o:m}};function Ne(i,t,e){let n=t.first,r=t.beyond;for(;n<r;){let s=n+r>>>1;i.start[s]<e?n=s+1:r=s}return n}var at=class{constructor(t){this.events=t}events;matches=null;total=0;seek(t){let e=t.trim().toLowerCase();this.choose(e?n=>n.text.toLowerCase().includes(e)||n.
short.toLowerCase().includes(e):null)}seekNames(t){let e=new Set(t);this.choose((n,r)=>e.has(r))}choose(t){if(this.matches=null,this.total=0,!t)return;let{events:e}=this,
n=Uint8Array.from(e.head.names,(o,a)=>t(o,a)?1:0),r=new Uint32Array(e.start.length+1),{name:s}=e;for(let o=0,a=0;o<s.length;o++)r[o+1]=a+=n[s[o]];n.forEach((o,a)=>{
o&&(this.total+=e.counts[a])}),this.matches={names:n,before:r}}next(t,e,n){if(!this.matches||!this.total)return m;let r=this.step(t,e,e!==m?this.events.start[e]:
n);return r!==m?r:this.step(t,m,t>0?-1/0:1/0)}step(t,e,n){let{events:r}=this,{start:s,name:o}=r,{names:a}=this.matches,l=(d,u)=>(s[d]-s[u]||d-u)*t>0,h=m;for(let d of r.
lanes){if(!d.ready)continue;let u=d.first,f=d.beyond;for(;u<f;){let p=u+f>>>1;s[p]<n||t<0&&s[p]===n&&p<e?u=p+1:f=p}for(let p=t>0?u:u-1;p>=d.first&&p<d.beyond&&!(h!==
m&&l(p,h));p+=t)if(a[o[p]]&&(e===m||l(p,e))){h=p;break}}return h}};var bt=8,Ue=[["On the GPU",["gpu"]],["GPU idle",["idle"]],["API calls",["api"]],["Outermost ops",["ops"]]];function $e(i,t,e,n){let r=new Map;for(let s of i.lanes){
let{kind:o}=s.group.track;if(!(!s.ready||!n.includes(o)||o==="ops"&&s.depth>0))for(let a=i.after(s,t);a<s.beyond&&i.start[a]<e;a++){let l=Math.min(e,i.end[a])-Math.
max(t,i.start[a]),h=r.get(i.name[a]);h?(h[0]++,h[1]+=l):r.set(i.name[a],[1,l])}}return[...r].map(([s,[o,a]])=>({name:s,count:o,time:a})).sort((s,o)=>o.time-s.time)}
function Kt(i,t,e,n){let r=c("div",{class:"totals"});for(let[s,o]of Ue){let a=$e(i,t,e,o),l=a.reduce((u,f)=>u+f.time,0);if(!a.length)continue;let h=a.slice(0,bt).
map(u=>{let f=i.head.names[u.name],p=f.short||f.text;return c("tr",{},c("td",{class:"number"},E(u.time)),c("td",{class:"number"},K(u.time,e-t)),c("td",{class:"n\
umber"},A(u.count)),c("td",{},c("button",{class:"go",title:f.text,onclick:()=>n(p)},p)))}),d=a.length>bt?c("p",{class:"quiet"},`and ${A(a.length-bt)} more names`):
"";r.append(c("div",{},c("h3",{},`${s}: ${E(l)}`),c("table",{},c("thead",{},c("tr",{},...["time","share","count","name"].map((u,f)=>c("th",{scope:"col",class:f<
3?"number":""},u)))),c("tbody",{},...h)),d))}return r}var lt=class{constructor(t,e){this.length=t;this.changed=e;this.end=t}length;changed;start=0;end;gliding=0;get span(){return this.end-this.start}move(t,e){let{length:n}=this,
r=Math.min(n*1.02,Math.max(200,e-t)),s=e-t===r?t:(t+e-r)/2;this.start=Math.max(-.01*n,Math.min(s,(1+.01)*n-r)),this.end=this.start+r,this.changed()}pan(t){this.
move(this.start+t,this.end+t)}zoom(t,e=(this.start+this.end)/2){this.move(e-(e-this.start)*t,e+(this.end-e)*t)}stop(){this.gliding++}glide(t,e){let n=++this.gliding,
r=this.start,s=this.end,o=performance.now();if(matchMedia("(prefers-reduced-motion: reduce)").matches){this.move(t,e);return}let a=()=>{if(n!==this.gliding)return;
let l=Math.min(1,(performance.now()-o)/160),h=1-(1-l)**3;this.move(r+(t-r)*h,s+(e-s)*h),l<1&&requestAnimationFrame(a)};a()}};var He=400,ht=class{constructor(t,e,n,r){this.head=t;this.events=new nt(t),this.events.read(e,n,0,t.early_parts),this.parts=_t(r),this.time=new lt(Math.max(1,t.
length_ns),()=>this.redraw()),this.picture=new tt(this.parts.view,this.events,this.time),this.overlay=new ot(this.parts.over,this.picture),this.minimap=new st(this.
parts.map,this.events,this.time),this.relations=new it(this.events),this.search_=new at(this.events),this.details=new rt(this.events,this.relations,s=>this.choose(
s,!0),s=>this.search(s)),this.dress(),this.legend(),this.resize(),this.openAddress(),new ResizeObserver(()=>this.resize()).observe(this.parts.stage),Rt(()=>{this.
dress(),this.redraw()}),addEventListener("hashchange",()=>this.openAddress()),Gt(this)}head;events;time;picture;relations;search_;parts;chosen=m;hovered=m;range=null;overlay;minimap;details;look;paint;colours;pending=!1;writing=0;gaps=null;addRest(t){
let e=this.head.tracks.reduce((r,s)=>Math.max(r,s.part+1),0);this.events.read(t,0,this.head.early_parts,e),this.parts.find.value&&this.seek(this.parts.find.value);
let{event:n}=ct(location.hash);n!==void 0&&this.chosen===m&&this.openAddress(),this.chosen!==m&&this.choose(this.chosen),this.redraw()}goTo(t,e){let n=(e-t)*.05;
this.parts.stage.scrollIntoView({block:"nearest"}),this.time.glide(t-n,e+n)}search(t){this.parts.find.value=t,this.seek(t),this.parts.stage.scrollIntoView({block:"\
nearest"}),this.next(1)}showFinding(t){let e=this.head.spots.find(n=>n.finding===t);if(e){if(this.parts.stage.scrollIntoView({block:"center"}),!e.names.length){
this.throughGaps(e.cause);return}this.parts.find.value="",this.search_.seekNames(e.names),this.afterSearch(),this.next(1)}}redraw(){this.pending||(this.pending=
!0,requestAnimationFrame(()=>{this.pending=!1,this.draw()}))}draw(){this.picture.draw(this.look,this.paint,this.colours,this.search_.matches),this.minimap.draw(
this.look),this.drawOver(),this.parts.span.textContent=E(this.time.span),clearTimeout(this.writing),this.writing=setTimeout(()=>this.writeAddress(),He)}drawOver(){
let{chosen:t,hovered:e,range:n,relations:r}=this,s=t!==m;this.overlay.draw({chosen:t,hovered:e,range:n,family:s?r.family(t):[],arrows:s?this.arrows:[]},this.look)}arrows=[];dress(){
this.look=Ht(),this.paint=$t(this.head.names,this.look.dark,this.look.paper),this.minimap.forget(),this.colourMatches()}colourMatches(){let{full:t,faded:e}=this.
paint,{matches:n}=this.search_;this.colours=n?t.map((r,s)=>n.names[s]?r:e[s]):t}resize(){let t=window.devicePixelRatio||1,e=this.parts.stage.getBoundingClientRect();
this.picture.resize(e.width,e.height,t),this.overlay.resize(t),this.minimap.resize(t),this.draw()}legend(){for(let[t,e]of this.head.names.entries()){if(e.cause===
null||!this.events.counts[t])continue;let{cause:n}=e,r=R("svg",{class:"swatch",viewBox:"0 0 1 1","aria-hidden":"true"},R("rect",{class:`part ${n.replaceAll("_",
"-")} cause`,width:1,height:1}));this.parts.legend.append(c("li",{},c("button",{type:"button",class:"plain",title:"Go through these gaps, the largest first",onclick:()=>this.
throughGaps(n)},r,e.short||e.text)))}}throughGaps(t){let{events:e}=this,n=this.head.names.flatMap((s,o)=>s.cause===t?[o]:[]);this.parts.find.value=`idle: ${t.replaceAll(
"_"," ")}`,this.search_.seekNames(n);let r=[];for(let s of e.lanes)if(s.group.track.kind==="idle")for(let o=s.first;o<s.beyond;o++)n.includes(e.name[o])&&r.push(
o);r.sort((s,o)=>e.duration(o)-e.duration(s)),this.gaps={rows:r,at:-1},this.afterSearch(),this.nextGap()}nextGap(){let{gaps:t}=this;t?.rows.length&&(t.at=(t.at+
1)%t.rows.length,this.choose(t.rows[t.at],!0),this.parts.found.textContent=`gap ${A(t.at+1)} of ${A(t.rows.length)}, the largest first: G for the next`)}seek(t){
this.gaps=null,this.search_.seek(t),this.afterSearch()}afterSearch(){let{found:t,next:e,previous:n}=this.parts,{matches:r,total:s}=this.search_;t.textContent=r?
kt(s,"match","matches"):"",e.disabled=n.disabled=!s,this.colourMatches(),this.redraw()}next(t){let e=this.search_.next(t,this.chosen,t>0?this.time.start:this.time.
end);e!==m&&this.choose(e,!0)}choose(t,e=!1){let{panel:n}=this.parts,{events:r}=this;if(this.chosen=t,this.arrows=t===m?[]:this.relations.arrows(t),n.hidden=t===
m&&!this.range,t!==m){let s=this.head.names[r.name[t]],o=this.paint.full[r.name[t]],a=R("svg",{class:"swatch",viewBox:"0 0 1 1","aria-hidden":"true"},R("rect",{
width:1,height:1,fill:Ut([o&255,o>>>8&255,o>>>16&255])}));this.show(c("h3",{},a,s.cause!==null?s.text:r.label(t)),this.details.same(t),this.details.element(t)),
e&&this.reveal(t)}else this.range&&this.describeRange();this.redraw()}selectRange(t){this.range=t&&[Math.max(0,Math.min(...t)),Math.min(this.time.length,Math.max(
...t))],this.range&&(this.chosen=m,this.arrows=[]),this.parts.panel.hidden=!this.range&&this.chosen===m,this.range&&this.describeRange(),this.redraw()}describeRange(){
let[t,e]=this.range,n=c("button",{type:"button",onclick:()=>this.time.glide(t,e)},"Zoom here");this.show(c("h3",{},`Selected ${E(e-t)}`),n,Kt(this.events,t,e,r=>this.
search(r)))}show(t,e,n){let r=c("button",{type:"button",class:"close","aria-label":"Close",onclick:()=>{this.selectRange(null),this.choose(m),this.parts.view.focus(
{preventScroll:!0})}},"×");this.parts.panel.replaceChildren(c("div",{class:"title"},t,e,r),n)}reveal(t){let{events:e,time:n,picture:r}=this,s=e.laneOf(t),o=e.duration(
t),a=e.start[t];s.group.open||(s.group.open=!0,r.place());let l=Math.max(o*8,4e4);o>n.span*.9||o/n.span<.004?n.glide(Math.max(0,a-l),Math.min(n.length,a+o+l)):(a<
n.start||a+o>n.end)&&n.glide(a+o/2-n.span/2,a+o/2+n.span/2),this.scrollTo([t,...this.relations.family(t)])}scrollTo(t){let{picture:e}=this,{pinned:n}=e.layout,r=e.
height-39-n,s=t.map(l=>e.layout.of(this.events.laneOf(l))).filter(l=>l!==void 0&&l.y>=n).map(l=>l.y);if(!s.length)return;let o=Math.min(...s),a=Math.max(...s)+17;
a-o>r&&(o=s[0],a=o+17),o-e.scroll<n?e.scroll=o-n-22:a-e.scroll>n+r&&(e.scroll=Math.min(o-n-22,a-n-r+6))}toggle(t){let e=this.events.groups.filter(r=>r.track.kind===
t),n=!e.some(r=>r.open);for(let r of e)r.open=n;this.picture.place(),this.redraw()}fit(t){let e=this.events.duration(t)*.15+200;this.time.glide(this.events.start[t]-
e,this.events.end[t]+e)}followLink(){let{chosen:t,relations:e,events:n}=this;if(t===m)return;let r=n.link[t],s=r!==m?r:e.launched(t)[0]??(n.kind(t)==="ops"?e.backwardOf(
t)[0]??e.workOf(t)[0]:void 0);s!==void 0&&this.choose(s,!0)}openAddress(){let{at:t,event:e,range:n}=ct(location.hash);t&&t[1]>t[0]&&this.time.move(t[0],t[1]),n&&
this.selectRange(n),e!==void 0&&e<this.head.events&&this.events.laneOf(e).ready&&this.choose(e),(t||n||e!==void 0)&&this.parts.stage.scrollIntoView({block:"cent\
er"})}writeAddress(){let{time:t,chosen:e,range:n}=this,r=t.start<=0&&t.end>=t.length,s=Ct({...r?{}:{at:[t.start,t.end]},...e!==m?{event:e}:{},...n?{range:n}:{}});
if(!(!s&&!/^#(at|event|range)=/.test(location.hash)))try{history.replaceState(null,"",s?`#${s}`:location.href.split("#")[0])}catch{}}};var Bt={begin:performance.now()},dt=i=>{Bt[i]=performance.now()},Ft=()=>new Promise(i=>requestAnimationFrame(()=>setTimeout(i)));function Wt(){let i=[...document.
querySelectorAll("main section[id]")].flatMap(t=>{let e=t.querySelector("h2")?.firstChild?.textContent??t.getAttribute("aria-label");return e&&t.childElementCount?
[c("a",{href:`#${t.id}`},e)]:[]});G("contents").replaceChildren(...i)}async function Ie(){let i=await et("data-timeline");dt("inflated");let t=new DataView(i.buffer).
getUint32(0,!0),e=JSON.parse(new TextDecoder().decode(i.subarray(4,4+t))),n=new ht(e,i,4+t,G("timeline"));dt("drawn"),Wt();for(let r of document.querySelectorAll(
"[data-finding]")){let s=Number(r.dataset.finding);r.append(c("button",{type:"button",class:"jump",onclick:()=>n.showFinding(s)},"Show on the timeline"))}return Ft().
then(()=>dt("painted")),n}async function _e(i){await Ft(),i.addRest(await et("data-python"));let t=await It("data-panels");for(let e of Tt){let n=t[e.name];if(!n)
continue;let r=c("div",{class:"body"});G("panels").append(c("section",{id:e.name,class:"section"},c("h2",{},e.title),r)),e.draw(n,r,i)}Wt(),dt("complete")}document.
querySelector("header")?.append(Ot());var De=new Promise(i=>document.addEventListener("DOMContentLoaded",()=>i()));Ie().then(async i=>{Object.assign(window,{warpline:{
marks:Bt,timeline:i}}),await De,await _e(i)});})();
